import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { openMongoCoordination } from '../../../stores/mongodb/coordination.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { databaseOf, withoutConcerns } from '../../../stores/mongodb/connection-string.ts';
import { at, thing, thingsProjection, writerOf } from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';

/** The adapters decide on concerns and read preference, but drivers merge options with the URL's. */
describe('concerns in a MongoDB URL', () => {
  let server: MongoServer;
  let readModel: ReadModel;
  let coordination: Coordination;

  afterEach(async () => {
    await readModel.close();
    await coordination.close();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start({ replicaSet: 'rs0' });
  });

  for (const options of [
    'w=0',
    'journal=false&W=1',
    'j=false',
    'wtimeoutMS=1',
    'wtimeout=1',
    'readConcernLevel=linearizable',
    'readConcernLevel=majority',
    'readPreference=secondaryPreferred&maxStalenessSeconds=120',
    'readPreference=nearest&readPreferenceTags=dc:east&readPreferenceTags=',
  ]) {
    it(`are ignored: ${options}`, async () => {
      const settings = { url: `${server.url()}?retryReads=true&${options}`, telemetry: silent };
      readModel = await openMongoReadModel(settings);
      coordination = await openMongoCoordination(settings);
      const projection = thingsProjection();
      const writer = await writerOf(readModel, projection);
      const documents = [thing('a', 1, {})];
      await writer.write({ documents, from: BEGINNING, to: at(1) });
      await writer.load(['a']);
      await readModel.switchTo(projection, 1);
      await readModel.find(projection, { filters: [], sort: [], limit: 1 });
      await readModel.count(projection, []);
      await coordination.acquire('lease', 'one', 1_000);
      await coordination.recall('text');

      const safely = { w: 'majority', j: true };
      for (const { command, body } of server.log) {
        expect(body, command).not.to.have.property('$readPreference');
        const isStatement = body['autocommit'] === false && command !== 'commitTransaction';
        if (isStatement) continue;
        if (['find', 'aggregate', 'count'].includes(command)) {
          expect(body['readConcern'], command).to.deep.equal({ level: 'local' });
        } else if (command === 'commitTransaction') {
          // The driver limits commits to ten seconds, and then reports an unknown outcome.
          expect(body['writeConcern']).to.deep.equal({ ...safely, wtimeout: 10_000 });
        } else if (command !== 'ping') {
          expect(body['writeConcern'], command).to.deep.equal(safely);
        }
      }
      const begun = server.log.filter(({ body }) => body['startTransaction'] === true);
      expect(begun.map(({ body }) => body['readConcern'])).to.deep.equal([{ level: 'local' }]);
    });
  }
});

describe('a MongoDB URL without its concerns', () => {
  it('keeps everything else, whatever its hosts and its database', () => {
    for (const [url, rest] of [
      ['mongodb://one,two:27018/views', 'mongodb://one,two:27018/views'],
      ['mongodb://one/?w=1', 'mongodb://one/'],
      ['mongodb://a:b%3F@one/?w=1&tls=true&J=0', 'mongodb://a:b%3F@one/?tls=true'],
      [
        'mongodb+srv://one/my-views?authSource=admin&w=1',
        'mongodb+srv://one/my-views?authSource=admin',
      ],
    ] as const) {
      expect(withoutConcerns(url)).to.equal(rest);
      expect(databaseOf(rest)).to.equal(databaseOf(url));
    }
  });
});
