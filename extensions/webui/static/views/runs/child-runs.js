// The child runs of a run: steps wait for them to end.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { learnTitles } from '../../names.js';
import { Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { Updates, useUpdates } from '../../ui/updates.js';
import { runColumns } from './runs-table.js';

const columns = runColumns({});
const MAX_RUNS = 200;
/** The interval of reads in milliseconds. Live updates of the parent do not cover its children. */
const BEAT = 3000;

/** Renders nothing for a run that cannot have child runs. */
export function ChildRuns({ run }) {
  const mayHaveSome = run.plan === null || run.plan.some(({ uses }) => uses === 'tasks.run');
  return mayHaveSome && html`<${Runs} parent=${run} />`;
}

function Runs({ parent }) {
  const runs = useUpdates(
    async (signal) => {
      const query = { parent_run_id: parent.id, limit: MAX_RUNS };
      const { items } = await call('GET', 'runs', { query, signal });
      const tasks = items.map(({ task_id: task }) => task);
      await learnTitles(tasks, signal);
      return items;
    },
    // Read once more when the parent ends, because updates end with it.
    [parent.id, parent.finished_at],
    parent.finished_at === null ? { every: BEAT } : {},
  );
  if (runs.data?.length === 0) return null;
  const aside = html`<${Updates} of=${runs} what="Child runs" />`;
  return html`<${Section} title="Child runs" aside=${aside}>
    <${Loaded} of=${runs}>
      ${(items) => html`<${Table} caption="Child runs" columns=${columns} items=${items} />`}
    <//>
  <//>`;
}
