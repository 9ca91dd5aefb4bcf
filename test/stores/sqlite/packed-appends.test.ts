import { expect } from 'chai';
import {
  ANY,
  AppendPacker,
  NONE,
  PackedSequences,
  type WriteSequence,
} from '../../../stores/sqlite/event-log/writing/protocol.ts';

const event = (id: string, data = '{}'): WriteSequence['appends'][number]['events'][number] => {
  return { id, type: `Type${id}`, data, metadata: `{"id":"${id}"}` };
};

const sequences: readonly WriteSequence[] = [
  { ticket: 1, appends: [{ stream: 'a', expected: NONE, events: [event('1'), event('2')] }] },
  {
    ticket: 7,
    appends: [
      { stream: 'größer', expected: 12, events: [event('3', '{"text":"😀"}')] },
      { stream: 'b', expected: ANY, events: [event('4')] },
    ],
  },
  { ticket: 9, appends: [] },
];

describe('appends packed for the writer thread', () => {
  it('come out as they went in, one sequence after the other', () => {
    const packer = new AppendPacker();
    for (const sequence of sequences) packer.add(sequence);
    const packed = new PackedSequences(structuredClone(packer.take()));
    const out: WriteSequence[] = [];
    while (packed.left > 0) out.push(packed.take());
    expect(out).to.deep.equal(sequences);
    expect(packer.size).to.equal(0);
  });

  it('are measured by the characters of their events', () => {
    const packer = new AppendPacker();
    packer.add({
      ticket: 1,
      appends: [{ stream: 'long-name', expected: 3, events: [event('5')] }],
    });
    const packed = new PackedSequences(packer.take());
    packed.take();
    const { id, type, data, metadata } = event('5');
    expect(packed.characters).to.equal((id + type + data + metadata).length);
  });

  it('keep stream names apart from event data, which a remembered name would keep in memory', () => {
    const packer = new AppendPacker();
    for (const sequence of sequences) packer.add(sequence);
    expect(packer.take()).to.include({ size: 3, names: 'agrößerb' });
  });
});
