import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { loggedCommands } from './logged-commands.ts';

const VIEWS = 5;

for (const replicaSet of [undefined, 'rs0']) {
  describe(`checkpoints that move without documents on ${replicaSet ?? 'a standalone server'}`, () => {
    let server: MongoServer;
    let readModel: ReadModel;
    let projections: readonly Projection[];
    let writers: readonly ViewWriter[];

    afterEach(async () => {
      await readModel.close();
      await server.stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      server = await MongoServer.start(replicaSet === undefined ? {} : { replicaSet });
      readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
      projections = Array.from({ length: VIEWS }, () => thingsProjection());
      writers = await Promise.all(projections.map((each) => writerOf(readModel, each)));
      // On a replica set, a writer's first write may have to end a transaction.
      const documents = [thing('a', 1, {})];
      for (const writer of writers) await writer.write({ documents, from: BEGINNING, to: at(1) });
      server.clearLog();
    });

    const move = (writer: ViewWriter, from: number): Promise<void> =>
      writer.write({ documents: [], from: at(from), to: at(from + 1) });
    const positions = async () => Promise.all(writers.map((writer) => writer.checkpoint()));
    const moves = () => loggedCommands(server).filter((line) => line.startsWith('update'));

    it('move in one command, whatever the number of views', async () => {
      await Promise.all(writers.map((writer) => move(writer, 1)));
      expect(moves()).to.deep.equal([`update _checkpoints ${VIEWS}`]);
      expect(await positions()).to.deep.equal(Array(VIEWS).fill(at(2)));
    });

    it('share the next command while one is in progress', async () => {
      const [first, ...others] = writers;
      if (first === undefined) throw new Error('there are writers');
      const slow = server.fault({ command: 'update', effect: { kind: 'hold' } });
      const moving = move(first, 1);
      await slow.met;
      const rest: Promise<void>[] = [];
      for (const writer of others) {
        rest.push(move(writer, 1));
        // Takes a round trip, so that the move before could start its own command.
        await writer.checkpoint();
      }
      slow.release();
      await Promise.all([moving, ...rest]);
      expect(moves()).to.deep.equal(['update _checkpoints 1', `update _checkpoints ${VIEWS - 1}`]);
      expect(await positions()).to.deep.equal(Array(VIEWS).fill(at(2)));
    });

    it('move except for those whose writers were replaced, which get an error', async () => {
      const [first, second] = projections;
      if (first === undefined || second === undefined) throw new Error('there are projections');
      const later = await writerOf(readModel, first, { fence: 2 });
      await later.write({ documents: [], from: at(1), to: at(2) });
      const elsewhere = await writerOf(readModel, second);
      await elsewhere.write({ documents: [], from: at(1), to: at(9) });
      const outcomes = await Promise.allSettled(writers.map((writer) => move(writer, 1)));
      const codes = outcomes.map((one) => (one.status === 'rejected' ? codeOf(one.reason) : ''));
      expect(codes).to.deep.equal(['FENCED', 'FENCED', '', '', '']);
      expect(await positions()).to.deep.equal([at(2), at(9), at(2), at(2), at(2)]);
    });

    it('all fail if their command does, and move when they are requested again', async () => {
      server.fault({
        command: 'update',
        effect: {
          kind: 'error',
          code: 14031,
          codeName: 'OutOfDiskSpace',
          message: 'not authorized',
        },
      });
      const failing = writers.map((writer) => rejectsWith('UNAVAILABLE', move(writer, 1)));
      await Promise.all(failing);
      expect(await positions()).to.deep.equal(Array(VIEWS).fill(at(1)));
      await Promise.all(writers.map((writer) => move(writer, 1)));
      expect(await positions()).to.deep.equal(Array(VIEWS).fill(at(2)));
    });
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
