import { useSqliteTempFolder } from '../../../app/starting/sqlite-temp-folder.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';

// Builds a view in one folder and sorts in another. It runs in a process of its own, because SQLite
// reads its environment only once.

/** 24 MiB of keys, more than SQLite sorts in memory. */
const KEYS = 1_500;
const KEY_LENGTH = 16 * 1024;

const [, , views = '', sorting = ''] = process.argv;
useSqliteTempFolder(sorting);
const readModel = await openSqliteReadModel({ directory: views, telemetry: silent });
const writer = await writerOf(readModel, thingsProjection(), { bulk: true });
const documents = Array.from({ length: KEYS }, (_, i) =>
  thing(String(i).padEnd(KEY_LENGTH, '.'), i + 1, {}),
);
await writer.write({ documents, from: BEGINNING, to: at(KEYS) });
await writer.finish();
process.stdout.write(String(await writer.count()));
await writer.close();
await readModel.close();
