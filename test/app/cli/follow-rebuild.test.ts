import { expect } from 'chai';
import type { Session } from '../../../app/cli/calling/session.ts';
import {
  followRebuild,
  shortProgressOf,
  type ShownProjection,
  type ShownRebuild,
} from '../../../app/cli/views/follow-rebuild.ts';
import { QuickClock } from '../../support/quick-clock.ts';

const view: ShownProjection = {
  name: 'runs',
  version: 1,
  schema: 1,
  state: 'following',
  position: '',
  lag_seconds: 0,
  caught_up: true,
  handled: 75,
  parked: 0,
  rebuild: null,
  previous: null,
  detail: null,
};
const rebuilt = (rebuild: Partial<ShownRebuild>): ShownProjection => ({
  ...view,
  rebuild: {
    version: 2,
    state: 'waiting',
    handled: 0,
    progress: 0,
    events_per_second: 0,
    seconds_left: null,
    left_out: 0,
    detail: null,
    switch: 'auto',
    comparison: null,
    ...rebuild,
  },
});
const read: ShownProjection = { ...view, version: 2 };

describe('a followed rebuild', () => {
  /** The output for these responses of the service, one poll after the other. */
  async function shown(answers: readonly ShownProjection[], isTerminal = false): Promise<string> {
    const written: string[] = [];
    const left = [...answers];
    const session = {
      client: { get: async () => ({ projections: left.splice(0, 1) }) },
      clock: new QuickClock(),
      environment: {
        err: { write: (text: string) => void written.push(text), isTerminal },
        signal: new AbortController().signal,
      },
    };
    await followRebuild(session as unknown as Session, 'runs', 2);
    return written.join('');
  }
  const whole = `[${'█'.repeat(24)}] 100 %  75 events\nversion 2 is live`;

  it('shows its size if it finished between two polls', async () => {
    expect(await shown([rebuilt({}), read])).to.equal(`${whole}\n`);
    expect(await shown([read])).to.equal(`${whole}\n`);
    expect(await shown([rebuilt({}), read], true)).to.equal(`\r\u001b[2K${whole}\n`);
  });

  it('shows that it waits, and then its progress', async () => {
    const half = rebuilt({ state: 'filling', progress: 0.5, handled: 40, events_per_second: 80 });
    expect(await shown([rebuilt({}), rebuilt({}), rebuilt({}), half, read])).to.equal(
      [
        `[${'░'.repeat(24)}]   0 %  waiting`,
        `[${'█'.repeat(12)}${'░'.repeat(12)}]  50 %  40 events  80/s`,
        'version 2 is live\n',
      ].join('\n'),
    );
  });

  it('shows progress and time left in a list', () => {
    const inList = (rebuild: Partial<ShownRebuild>): string => {
      const { rebuild: made } = rebuilt(rebuild);
      return made === null ? '' : shortProgressOf(made);
    };
    expect(inList({ state: 'filling', progress: 0.129 })).to.equal('2 filling, 12 %');
    expect(inList({ state: 'filling', progress: 0.5, seconds_left: 3026 })).to.equal(
      '2 filling, 50 %, 50 min 26 s left',
    );
    expect(inList({ state: 'catching_up', progress: 1 })).to.equal('2 catching up');
  });

  it('shows no progress of a canceled rebuild', async () => {
    expect(await shown([rebuilt({}), view])).to.equal('version 1 is live\n');
  });
});
