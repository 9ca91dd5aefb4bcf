import type { ReadModel } from '../../projections/read-model.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';
import { describeReadModelContract } from './read-model.ts';
import { describeGenerations } from './read-model-generations.ts';
import type { ReadModelHarness } from './read-model-things.ts';

async function embedded(documentsHere?: number): Promise<ReadModelHarness> {
  const directory = await makeTemporaryDirectory();
  const opened: ReadModel[] = [];
  const options = documentsHere === undefined ? {} : { documentsHere };
  const another = async (): Promise<ReadModel> => {
    const readModel = await openSqliteReadModel({
      ...{ directory: directory.path, telemetry: silent },
      ...options,
    });
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
}

describeReadModelContract('the embedded read model', () => embedded());

describe('the embedded read model whose generations a thread fills', function () {
  this.timeout(30_000);
  let harness: ReadModelHarness;
  beforeEach(async () => {
    harness = await embedded(0);
  });
  afterEach(() => harness.close());
  describeGenerations(() => harness);
});
