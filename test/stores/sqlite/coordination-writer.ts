import { silent } from '../../../observability/telemetry.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';

// `node coordination-writer.ts <folder>`: writes to a coordination store as fast as it can, until it is killed.

const [directory = ''] = process.argv.slice(2);
const coordination = await openSqliteCoordination({
  directory,
  telemetry: silent,
  clock: Date.now,
});
await coordination.count('theirs', 1, 60_000);
process.send?.('begun');
for (let at = 0; ; at += 1) await coordination.count(`theirs ${at % 1000}`, 1, 60_000);
