import { silent } from '../../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';

/**
 * A process that fills a generation by a thread, a batch after another, from where it is, and tells how many documents
 * it has handed over; until it is killed.
 *
 * Arguments: the folder of the views, the name of the view, documents to a batch.
 */
const [directory = '', name = '', size = ''] = process.argv.slice(2);

const readModel = await openSqliteReadModel({ directory, telemetry: silent, documentsHere: 0 });
const writer = await writerOf(readModel, { ...thingsProjection(), name }, { bulk: true });
let from = await writer.checkpoint();
for (let done = Number(from); ; done += Number(size)) {
  const documents = Array.from({ length: Number(size) }, (_, i) => {
    const n = done + i + 1;
    return { ...thing(`k${n}`, n, { name: `name ${n}`, amount: n }), isFirst: true };
  });
  const to = at(done + documents.length);
  await writer.write({ documents, from, to });
  from = to;
  process.send?.(Number(to));
}
