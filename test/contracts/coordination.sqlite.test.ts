import { silent } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { openSqliteCoordination } from '../../stores/sqlite/coordination/coordination.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeCoordinationContract } from './coordination.ts';

describeCoordinationContract('the embedded coordination store', async () => {
  const directory = await makeTemporaryDirectory();
  let now = Date.parse('2026-01-01T00:00:00Z');
  const opened: Coordination[] = [];
  const another = async (): Promise<Coordination> => {
    const coordination = await openSqliteCoordination({
      directory: directory.path,
      telemetry: silent,
      clock: () => now,
    });
    opened.push(coordination);
    return coordination;
  };
  return {
    coordination: await another(),
    another,
    advance: async (milliseconds) => {
      now += milliseconds;
    },
    close: async () => {
      await Promise.all(opened.map((coordination) => coordination.close()));
      await directory.remove();
    },
  };
});
