// The runs for whose end steps of a run wait, or have waited.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { learnTitles } from '../../names.js';
import { Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { runColumns } from './runs-table.js';

const columns = runColumns({});
const MAX_RUNS = 200;
/** Between two reads: live changes of the parent do not tell of its children. Milliseconds. */
const BEAT = 3000;

/** Left out for a run without any. */
export function ChildRuns({ run }) {
  const mayHaveSome = run.plan === null || run.plan.some(({ uses }) => uses === 'tasks.run');
  return mayHaveSome && html`<${Runs} parent=${run} />`;
}

function Runs({ parent }) {
  const runs = useData(
    async (signal) => {
      const query = { parent_run_id: parent.id, limit: MAX_RUNS };
      const { items } = await call('GET', 'runs', { query, signal });
      const tasks = items.map(({ task_id: task }) => task);
      await learnTitles(tasks, signal);
      return items;
    },
    [parent],
    parent.finished_at === null ? { every: BEAT } : {},
  );
  if (runs.data?.length === 0) return null;
  return html`<${Section} title="Child runs">
    <${Loaded} of=${runs}>
      ${(items) => html`<${Table} caption="Child runs" columns=${columns} items=${items} />`}
    <//>
  <//>`;
}
