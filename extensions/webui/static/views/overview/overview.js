// What is wrong now, what failed, what ran and what comes. Live.

import { html } from '../../preact.js';
import { may } from '../../client.js';
import { useData } from '../../data.js';
import { LiveMark, useLive } from '../../live.js';
import { useStore } from '../../store.js';
import { Heading, Loaded, Section } from '../../ui/layout.js';
import { shownZone } from '../../zones.js';
import { concernsApprovals } from '../approvals/approvals.js';
import { HoldButton } from './banners.js';
import { ErrorGroups, readErrorGroups } from './error-groups.js';
import { Guide, readBeginning } from './guide.js';
import {
  DueTasks,
  Tiles,
  UnfinishedRuns,
  readDue,
  readTileHealth,
  readLag,
  readPending,
  readUnfinished,
} from './present-runs.js';
import { Problems, Sentence, readProblems } from './problems.js';
import { Slowest, readSlowest } from './slowest.js';
import { Strip, readStrip } from './strip.js';
import { Timeline, readTimeline } from './timeline.js';

/** Between two reads of what changes live, of the larger parts, and of the rest. Milliseconds. */
const PACE = 1000;
const SLOW_PACE = 4000;
const BEAT = 15_000;

export function OverviewView() {
  const beginning = useData(readBeginning, []);
  // A part that cannot be read says so in the overview.
  if (beginning.data === undefined && beginning.error === null)
    return html`<${Heading} title="Overview" />`;
  return beginning.data
    ? html`<${Guide} ...${beginning.data} done=${beginning.reload} />`
    : html`<${FullOverview} />`;
}

function FullOverview() {
  const zone = useStore(shownZone);
  const problems = useData(readProblems, [], { pace: SLOW_PACE, every: BEAT });
  const strip = useData(readStrip, [zone], { pace: SLOW_PACE, every: BEAT });
  const errors = useData(readErrorGroups, [], { pace: PACE, every: BEAT });
  const timeline = useData(readTimeline, [], { pace: SLOW_PACE, every: BEAT });
  const active = useData(readUnfinished, [], { pace: PACE, every: BEAT });
  const pending = useData(readPending, [], { pace: PACE, every: BEAT });
  const due = useData(readDue, [], { every: BEAT });
  const slowest = useData(readSlowest, [], { every: BEAT });
  const lag = useData(readLag, [], { every: BEAT });
  const health = useData(readTileHealth, [], { every: BEAT });
  const live = useLive('runs/live', (name, data) => {
    const { position } = data;
    for (const each of [active, timeline]) each.refresh(position);
    if (name === 'run.ended') {
      for (const each of [problems, strip, errors]) each.refresh(position);
    }
    if (concernsApprovals(name, data)) pending.refresh(position);
  });
  const retried = () => active.reload();
  const figures = Object.fromEntries(
    Object.entries({ active, pending, due, lag, health }).map(([key, each]) => [key, each.data]),
  );
  return html`<div class="overview">
    <${Heading} title="Overview" beside=${html`<${Sentence} of=${problems} /><${LiveMark} state=${live} />`}>
      ${may('ops') && html`<${HoldButton} />`}
    <//>
    <div class="overview-top">
      <${Section} title="Last 24 hours" aside=${html`<span class="soft">${zone}</span>`}>
        <${Loaded} of=${strip}>${(each) => html`<${Strip} ...${each} />`}<//>
      <//>
      <${Section} title="Needs attention">
        <${Loaded} of=${problems}>${(each) => html`<${Problems} data=${each} />`}<//>
      <//>
    </div>
    <${Section} title="Failures by error, last 24 hours">
      <${Loaded} of=${errors}>${(found) => html`<${ErrorGroups} found=${found} done=${retried} />`}<//>
    <//>
    <${Section} title="From an hour ago to an hour ahead">
      <${Loaded} of=${timeline}>${(each) => html`<${Timeline} ...${each} />`}<//>
    <//>
    <${Tiles} ...${figures} />
    <${Loaded} of=${lag}>${() => null}<//>
    <div class="columns three">
      <${Section} title="Running, waiting and queued">
        <${Loaded} of=${active}>${(each) => html`<${UnfinishedRuns} ...${each} />`}<//>
      <//>
      <${Section} title="Slowest tasks, last 24 hours">
        <${Loaded} of=${slowest}>${(items) => html`<${Slowest} items=${items} />`}<//>
      <//>
      ${
        may('tasks:read') &&
        html`<${Section} title="Due in the next hour">
          <${Loaded} of=${due}>${(each) => html`<${DueTasks} ...${each} />`}<//>
        <//>`
      }
    </div>
  </div>`;
}
