import { expect } from 'chai';
import { slotShortage, slotUseIn, type SlotUse } from '../../../scheduler/runs/slots.ts';

const at = (minute: number): string => `2026-11-21T09:0${minute}:00.000Z`;

function holder(task_id: string, runs: number, minute: number): SlotUse['holders'][number] {
  return {
    task_id,
    created_by: 'somebody',
    runs,
    since: at(minute),
    run_id: `${task_id}-${minute}`,
  };
}

const full = (minute: number, ...holders: SlotUse['holders']): SlotUse => ({
  slots: 4,
  taken: 4,
  full_since: at(minute),
  holders,
});
const free: SlotUse = { slots: 4, taken: 3, full_since: null, holders: [] };

describe('the slots of several workers', () => {
  it('are short once no worker has a free slot', () => {
    expect(slotShortage([])).to.equal(null);
    expect(slotShortage([full(1), free])).to.equal(null);
    const shortage = slotShortage([full(1), full(3)]);
    expect(shortage).to.deep.include({ since: Date.parse(at(3)), slots: 8 });
  });

  it('may be free when a worker does not report them', () => {
    expect(slotShortage([full(1), slotUseIn({ roles: ['worker'] })])).to.equal(null);
  });

  it('list the tasks that hold the most slots across all workers, in descending order', () => {
    const one = full(1, holder('a', 3, 2), holder('b', 1, 1));
    const other = full(1, holder('b', 4, 3));
    expect(slotShortage([one, other])?.holders).to.deep.equal([
      holder('b', 5, 1),
      holder('a', 3, 2),
    ]);
  });

  it('are also held by direct tool calls', () => {
    const one = { ...full(1, holder('a', 3, 2)), calls: 1 };
    const other = { ...full(1), calls: 4 };
    expect(slotShortage([one, other])?.calls).to.equal(5);
    expect(slotShortage([full(1)])?.calls).to.equal(0);
  });

  it('list at most five tasks', () => {
    const many = ['a', 'b', 'c', 'd', 'e', 'f'].map((task, index) => holder(task, index + 1, 1));
    const holders = slotShortage([full(1, ...many)])?.holders;
    expect(holders?.map(({ task_id }) => task_id)).to.deep.equal(['f', 'e', 'd', 'c', 'b']);
  });
});
