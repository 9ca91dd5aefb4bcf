import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import { GenerationWriter } from '../../../projections/generations/generation-writer.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { rejectsWith } from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { LogOfTest, request } from '../recorded.ts';

describe('a batch of a fill that is lost after its write has started', () => {
  leavesNothingOpen();

  it('is applied once when it is repeated', async () => {
    const server = await MongoServer.start();
    const readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
    try {
      const writer = new GenerationWriter({
        readModel,
        projection: runsProjection,
        generation: 1,
        fence: 1,
        telemetry: silent,
        parking: { of: async () => new Map(), park: async () => undefined },
        endsAtPoison: true,
        skipped: () => new Set(),
        onPassed: () => undefined,
      });
      const log = new LogOfTest();
      const events = ['run-1', 'run-2', 'run-3', 'run-4'].map((run) =>
        log.add(run, 'RunRequested', request()),
      );
      const take = async (from: number, to: number): Promise<void> => {
        await writer.take(events.slice(from, to), events[to - 1]?.position ?? '');
        await writer.flush();
      };
      await writer.open(true);
      await take(0, 1);
      const effect = {
        kind: 'error',
        code: 14031,
        codeName: 'OutOfDiskSpace',
        message: 'no',
      } as const;
      server.fault({
        command: 'insert',
        when: ({ documents }) => Array.isArray(documents) && documents.length === 2,
        effect,
      });
      await take(1, 3);
      await rejectsWith('UNAVAILABLE', take(3, 4));
      for (let attempt = 1; attempt <= 2; attempt += 1) {
        await writer.open(true);
        expect([writer.handled, writer.passed]).to.deep.equal([1, events[0]?.position]);
      }
      await take(1, 4);
      await writer.finish();
      expect(writer.handled).to.equal(4);
      await writer.open(true);
      expect([writer.handled, writer.passed]).to.deep.equal([4, events[3]?.position]);
      await writer.close();
    } finally {
      await readModel.close();
      await server.stop();
    }
  });
});
