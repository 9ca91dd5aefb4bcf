import { expect } from 'chai';
import { addTask, onLog } from '../archive/small-log.ts';
import { toIso } from '../../../domain/clock.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc } from './command-line.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('the output of svc owed', () => {
  const directory = useTemporaryDirectory();

  it('uses the singular for a single fire', async () => {
    await onLog(directory(), (store) =>
      addTask(store, AT, { schedule_kind: 'once', schedule_expr: toIso(AT + 60_000) }),
    );
    const { code, out, err } = await svc(['owed'], { env: { SVC_DATA_DIR: directory() } });
    expect(code, err).to.equal(0);
    expect(out).to.include('\n1 fire of 1 task is due and undecided\n');
  });
});
