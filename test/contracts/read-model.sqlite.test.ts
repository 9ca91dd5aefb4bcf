import type { ReadModel } from '../../projections/read-model.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeReadModelContract } from './read-model.ts';

describeReadModelContract('the embedded read model', async () => {
  const directory = await makeTemporaryDirectory();
  const opened: ReadModel[] = [];
  const another = async (): Promise<ReadModel> => {
    const readModel = await openSqliteReadModel({ directory: directory.path, telemetry: silent });
    opened.push(readModel);
    return readModel;
  };
  return {
    readModel: await another(),
    another,
    close: async () => {
      await Promise.all(opened.map((readModel) => readModel.close()));
      await directory.remove();
    },
  };
});
