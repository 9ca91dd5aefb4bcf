// The overview: current problems, failures, past runs and coming fires, updated live.

import { html, useMemo, useState } from '../../preact.js';
import { may } from '../../client.js';
import { useData } from '../../data.js';
import { useLive } from '../../live.js';
import { useStore } from '../../store.js';
import { Heading, Loaded, Section } from '../../ui/layout.js';
import { Updates, together, usePause, useUpdates } from '../../ui/updates.js';
import { shownZone } from '../../zones.js';
import { concernsApprovals } from '../approvals/approvals.js';
import { HoldButton } from './banners.js';
import { ErrorGroups, MoreErrors, readErrorGroups } from './error-groups.js';
import { Guide, hasBegun, readBeginning } from './guide.js';
import {
  DueTasks,
  Tiles,
  UnfinishedRuns,
  readDue,
  readTileHealth,
  readPending,
  readProjections,
  readUnfinished,
} from './present-runs.js';
import { Problems, Sentence, readProblems } from './problems.js';
import { Slowest, readSlowest } from './slowest.js';
import { Strip, readStrip } from './strip.js';
import { Timeline, readTimeline } from './timeline.js';

/** The intervals in milliseconds between reads of the parts that change live, of the larger parts, and of the rest. */
const PACE = 1000;
const SLOW_PACE = 4000;
const BEAT = 15_000;

export function OverviewView() {
  const [isFull] = useState(hasBegun);
  return isFull ? html`<${FullOverview} />` : html`<${Beginning} />`;
}

function Beginning() {
  const beginning = useData(readBeginning, []);
  // A part that cannot be read shows its error in its place.
  if (beginning.data === undefined && beginning.error === null)
    return html`<${Heading} title="Overview" />`;
  return beginning.data
    ? html`<${Guide} ...${beginning.data} done=${beginning.reload} />`
    : html`<${FullOverview} />`;
}

// A part is drawn again only after it was read again, as some have hundreds of runs and others change each second.
const drawStrip = (each) => html`<${Strip} ...${each} />`;
const drawTimeline = (each) => html`<${Timeline} ...${each} />`;
const drawActive = (each) => html`<${UnfinishedRuns} ...${each} />`;
const drawSlowest = (items) => html`<${Slowest} items=${items} />`;
const drawDue = (each) => html`<${DueTasks} ...${each} />`;

function FullOverview() {
  const zone = useStore(shownZone);
  const pausing = usePause();
  const slow = { pace: SLOW_PACE, every: BEAT, pausing };
  const fast = { pace: PACE, every: BEAT, pausing };
  const polled = { every: BEAT, pausing };
  const problems = useUpdates(readProblems, [], slow);
  const strip = useUpdates(readStrip, [zone], slow);
  const errors = useUpdates(readErrorGroups, [], fast);
  const timeline = useUpdates(readTimeline, [], slow);
  const active = useUpdates(readUnfinished, [], fast);
  const pending = useUpdates(readPending, [], fast);
  const due = useUpdates(readDue, [], polled);
  const slowest = useUpdates(readSlowest, [], polled);
  const projections = useUpdates(readProjections, [], polled);
  const health = useUpdates(readTileHealth, [], polled);
  const live = useLive(pausing.isPaused ? null : 'runs/live', (name, data) => {
    const { position } = data;
    for (const each of [active, timeline]) each.refresh(position);
    if (name === 'run.ended') {
      for (const each of [problems, strip, errors]) each.refresh(position);
    }
    if (concernsApprovals(name, data)) pending.refresh(position);
  });
  const retried = () => active.reload();
  const figures = Object.fromEntries(
    Object.entries({ active, pending, due, health }).map(([key, each]) => [key, each.data]),
  );
  const { lag, halted } = projections.data ?? {};
  const ofService = { health: health.data, halted };
  const drawProblems = useMemo(
    () => (each) => html`<${Problems} data=${each} ...${ofService} />`,
    [health.data, projections.data],
  );
  const updates = together(pausing, [], live);
  return html`<div class="overview">
    <${Heading} title="Overview" beside=${html`<${Sentence} of=${problems} ...${ofService} /><${Updates} of=${updates} />`}>
      ${may('ops') && html`<${HoldButton} />`}
    <//>
    <div class="overview-top">
      <${Section} title="Last 24 hours" aside=${html`<span class="soft">${zone}</span>`}>
        <${Loaded} of=${strip}>${drawStrip}<//>
      <//>
      <${Section} title="Needs attention">
        <${Loaded} of=${problems}>${drawProblems}<//>
      <//>
    </div>
    <${Section} title="Failures by error, last 24 hours"
      aside=${errors.data !== undefined && html`<${MoreErrors} ...${errors.data} />`}>
      <${Loaded} of=${errors}>${(found) => html`<${ErrorGroups} found=${found} done=${retried} />`}<//>
    <//>
    <${Section} title="From an hour ago to an hour ahead">
      <${Loaded} of=${timeline}>${drawTimeline}<//>
    <//>
    <${Tiles} ...${figures} lag=${lag} />
    <${Loaded} of=${projections}>${() => null}<//>
    <div class="columns three">
      <${Section} title="Running, waiting and queued">
        <${Loaded} of=${active}>${drawActive}<//>
      <//>
      <${Section} title="Slowest tasks, last 24 hours">
        <${Loaded} of=${slowest}>${drawSlowest}<//>
      <//>
      ${
        may('tasks:read') &&
        html`<${Section} title="Due in the next hour">
          <${Loaded} of=${due}>${drawDue}<//>
        <//>`
      }
    </div>
  </div>`;
}
