import { expect } from 'chai';
import { failuresOfProcess, reportWork } from '../../../app/projecting/projector-failures.ts';
import type { ProjectorMessage } from '../../../app/projecting/projector-protocol.ts';
import { silent, type LogFields } from '../../../observability/telemetry.ts';
import { reportingTo } from '../../support/reporting-to.ts';

const WORK = 'could not send traces';

describe('work of a projector thread that its process does as well', () => {
  it('has one line for the process, and one when it works again', () => {
    const lines: { readonly message: string; readonly fields: LogFields }[] = [];
    const say = (message: string, fields: LogFields = {}): void =>
      void lines.push({ message, fields });
    const { failures } = reportingTo({ info: say, warn: say });
    const stacks: unknown[] = [];
    const threadLog = {
      ...silent.log,
      debug: (_message: string, { error }: LogFields = {}) => void stacks.push(error),
      warn: say,
    };
    const send = (message: ProjectorMessage): void => {
      if (message.kind === 'work') reportWork(failures, structuredClone(message));
    };
    const thread = failuresOfProcess(threadLog, send);
    const refused = new Error('refused');
    failures.failed(WORK, refused);
    thread.failed(WORK, refused);
    thread.worked(WORK);
    expect(lines).to.deep.include.members([{ message: WORK, fields: { error: 'refused' } }]);
    expect(lines.map(({ message }) => message)).to.deep.equal([
      WORK,
      `succeeded again after: ${WORK}`,
    ]);
    expect(lines[1]?.fields).to.include({ times: 2 });
    expect(stacks).to.deep.equal([refused]);
  });
});
