import { expect } from 'chai';
import { reportProjections } from '../../../app/projecting/projector-report.ts';
import { silent, type LogFields } from '../../../observability/telemetry.ts';
import { parseProjectionReport } from '../../../projections/projector/projection-report.ts';
import type {
  ProjectionState,
  ProjectionStatus,
} from '../../../projections/projector/projection-status.ts';
import { CoordinationError, type Coordination } from '../../../scheduler/coordination.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('the report of a projector', () => {
  const view = (state: ProjectionState): ProjectionStatus => ({
    name: 'runs',
    version: 1,
    schema: 1,
    state,
    position: '',
    lag_seconds: 0,
    caught_up: true,
    handled: 0,
    parked: 0,
    rebuild: null,
    previous: null,
    detail: null,
  });

  it('is repeated quickly while a view is being opened, and then every second', async () => {
    const clock = new VirtualClock();
    const reports: string[] = [];
    const coordination = {
      async remember(_name: string, text: string) {
        const report = parseProjectionReport(text);
        reports.push(`${report?.at.slice(-10) ?? ''} ${report?.views[0]?.state ?? ''}`);
      },
    } as unknown as Coordination;
    const stop = new AbortController();
    let state: ProjectionState = 'opening';
    const reporting = reportProjections({
      coordination,
      clock,
      fence: 1,
      telemetry: silent,
      signal: stop.signal,
      status: () => [view(state)],
    });
    await clock.advance(150);
    state = 'following';
    await clock.advance(2_000);
    stop.abort();
    await reporting;
    expect(reports).to.deep.equal([
      ...['00:00.000Z opening', '00:00.100Z opening', '00:00.200Z following'],
      ...['00:01.200Z following'],
    ]);
  });

  it('has one line when it cannot be written, one a minute with the count, and one when it can again', async () => {
    const clock = new VirtualClock();
    const lines: (readonly [string, unknown])[] = [];
    const say = (message: string, fields: LogFields = {}): void =>
      void lines.push([message, fields['times']]);
    let fails = true;
    const coordination = {
      async remember() {
        if (fails) throw new CoordinationError('no answer');
      },
    } as unknown as Coordination;
    const stop = new AbortController();
    const reporting = reportProjections({
      coordination,
      clock,
      fence: 1,
      telemetry: reportingTo({ warn: say, error: say, info: say }, () => clock.steady()),
      signal: stop.signal,
      status: () => [view('following')],
    });
    await clock.advance(70_000);
    fails = false;
    await clock.advance(1_000);
    stop.abort();
    await reporting;
    expect(lines).to.deep.equal([
      ['coordination store unavailable: no answer', undefined],
      ['coordination store unavailable: no answer', 60],
      ['coordination store available again', 71],
    ]);
  });
});
