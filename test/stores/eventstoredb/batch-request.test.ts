import streams from '@eventstore/db-client/generated/streams_pb.js';
import { expect } from 'chai';
import {
  encodeBatchAppend,
  type Append,
} from '../../../stores/eventstoredb/appending/batch-request.ts';
import { Fields } from '../../support/protobuf-fields.ts';

const CORRELATION_ID = '0f9c5b1e-5d0a-4c8e-9a37-2f6c7a1b3d4e';

const append: Append = {
  stream: 'task-ü€𝄞',
  expected: 41,
  events: [
    {
      id: '11111111-1111-4111-8111-111111111111',
      type: 'RunStarted',
      data: '{"text":"ü € 𝄞"}',
      metadata: '{"actor":"é"}',
    },
    { id: '22222222-2222-4222-8222-222222222222', type: 'RunEnded', data: '{}', metadata: '{}' },
  ],
};

/** A request as decoded by the client's own definition. */
function read(given: Partial<Append>): streams.BatchAppendReq {
  const bytes = encodeBatchAppend({ ...append, ...given }, CORRELATION_ID, 3_000);
  return streams.BatchAppendReq.deserializeBinary(bytes);
}

describe("a batched append's request", () => {
  it('has the stream, the correlation id, and no further parts', () => {
    const request = read({});
    expect(request.getCorrelationId()?.getString()).to.equal(CORRELATION_ID);
    expect(request.getIsFinal()).to.equal(true);
    const name = request.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? [];
    expect(Buffer.from(name).toString()).to.equal(append.stream);
  });

  it('has the events in order, byte for byte', () => {
    const events = read({})
      .getProposedMessagesList()
      .map((message) => ({
        id: message.getId()?.getString(),
        type: message.getMetadataMap().get('type'),
        data: Buffer.from(message.getData_asU8()).toString(),
        metadata: Buffer.from(message.getCustomMetadata_asU8()).toString(),
      }));
    expect(events).to.deep.equal(append.events);
  });

  it('says that the data is JSON', () => {
    for (const message of read({}).getProposedMessagesList()) {
      expect(message.getMetadataMap().get('content-type')).to.equal('application/json');
    }
  });

  it('has the expected revision', () => {
    const expected = (given: Append['expected']) => read({ expected: given }).getOptions();
    expect(expected('none')?.hasNoStream()).to.equal(true);
    expect(expected('any')?.hasAny()).to.equal(true);
    for (const revision of [
      0,
      1,
      127,
      128,
      16_384,
      2 ** 31,
      2 ** 32 + 5,
      Number.MAX_SAFE_INTEGER,
    ]) {
      const options = expected(revision);
      expect(options?.hasStreamPosition(), String(revision)).to.equal(true);
      expect(options?.getStreamPosition()).to.equal(String(revision));
    }
  });

  it('contains large data completely', () => {
    for (const length of [126, 127, 128, 16_383, 16_384, 300_000]) {
      const data = JSON.stringify('x'.repeat(length));
      const [message] = read({
        events: [{ ...(append.events[0] as Append['events'][0]), data }],
      }).getProposedMessagesList();
      expect(Buffer.from(message?.getData_asU8() ?? []).toString()).to.equal(data);
    }
  });

  it('has the deadline as a duration, which no clock can shift', () => {
    for (const [given, seconds, nanos] of [
      [3_000, 3, 0],
      [250, 0, 250_000_000],
      [1_999.5, 2, 0],
      [61_001, 61, 1_000_000],
    ] as const) {
      const bytes = encodeBatchAppend(append, CORRELATION_ID, given);
      const deadline = new Fields(bytes).one(2)?.one(7);
      expect([deadline?.number(1), deadline?.number(2)], String(given)).to.deep.equal([
        seconds,
        nanos,
      ]);
    }
  });
});
