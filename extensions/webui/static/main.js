// Starts the page: registers its views, finds out who is logged in, and starts its background work.

import { html, options, render } from './preact.js';
import { followAddress } from './address.js';
import { pause, resume } from './client.js';
import { isTextSelected } from './data.js';
import { followFocus } from './focus.js';
import { followKeys } from './keys.js';
import { learnAgents } from './names.js';
import { recallPreferences } from './preferences.js';
import { setRoutes } from './routes.js';
import { attempt, getState, setState } from './store.js';
import { Frame } from './frame/frame.js';
import { AgentForm } from './views/people/agent-form.js';
import { AgentView } from './views/people/agent.js';
import { AgentsView } from './views/people/agents.js';
import { ApprovalView } from './views/approvals/approval.js';
import { ApprovalsView } from './views/approvals/approvals.js';
import { AuditView } from './views/audit/audit.js';
import { EventView } from './views/events/event.js';
import { EventsView } from './views/events/events.js';
import { ExpiringKeysView } from './views/people/expiring-keys.js';
import { KeyForm } from './views/people/key-form.js';
import { NamespaceForm } from './views/namespaces/namespace-form.js';
import { NamespaceView } from './views/namespaces/namespace.js';
import { NamespacesView } from './views/namespaces/namespaces.js';
import { QuotaForm } from './views/namespaces/quota-form.js';
import { InsightsView } from './views/insights/insights.js';
import { OverviewView } from './views/overview/overview.js';
import { ProjectionsView } from './views/system/projections.js';
import { ResentDeliveriesView } from './views/people/resent-deliveries.js';
import { RunView } from './views/runs/run.js';
import { RunsView } from './views/runs/runs.js';
import { SecretForm } from './views/secrets/secret-form.js';
import { SecretsView } from './views/secrets/secrets.js';
import { StreamView } from './views/system/stream.js';
import { StreamsView } from './views/system/streams.js';
import { SystemView } from './views/system/system.js';
import { TaskForm } from './views/tasks/task-form.js';
import { TaskView } from './views/tasks/task.js';
import { TasksView } from './views/tasks/tasks.js';
import { WorkersView } from './views/workers/workers.js';

setRoutes([
  ['overview', OverviewView],
  ['tasks', TasksView],
  ['tasks/new', TaskForm],
  ['tasks/:id', TaskView],
  ['tasks/:id/edit', TaskForm],
  ['runs', RunsView],
  ['runs/:id', RunView],
  ['insights', InsightsView],
  ['approvals', ApprovalsView],
  ['approvals/:id', ApprovalView],
  ['workers', WorkersView],
  ['audit', AuditView],
  ['agents', AgentsView],
  ['agents/new', AgentForm],
  ['agents/keys', ExpiringKeysView],
  ['agents/resent', ResentDeliveriesView],
  ['agents/:id', AgentView],
  ['agents/:id/edit', AgentForm],
  ['agents/:id/keys/new', KeyForm],
  ['events', EventsView],
  ['events/:id', EventView],
  ['secrets', SecretsView],
  ['secrets/new', SecretForm],
  ['secrets/:name', SecretForm],
  ['namespaces', NamespacesView],
  ['namespaces/new', NamespaceForm],
  ['namespaces/:name', NamespaceView],
  ['namespaces/:name/edit', NamespaceForm],
  ['namespaces/:name/quotas', QuotaForm],
  ['system', SystemView],
  ['system/read-models', ProjectionsView],
  ['system/streams', StreamsView],
  ['system/streams/:id', StreamView],
]);

/** Finds out who is logged in, and retries until the service responds. */
async function begin() {
  for (let wait = 500; ; wait = Math.min(8000, wait * 2)) {
    try {
      await resume();
      break;
    } catch {
      // The page shows that the service does not respond.
      await pause(wait);
    }
  }
  if (getState().agent !== null) await attempt(learnAgents);
}

/**
 * While a button or a link is held down, nothing is redrawn: if it moved or disappeared, its release would not be a
 * click.
 */
function drawAfterPress() {
  let isPressed = false;
  let draw = null;
  const release = () => {
    isPressed = false;
    // The click comes right after.
    const pending = draw;
    draw = null;
    if (pending !== null) setTimeout(() => pending());
  };
  const press = ({ button, isPrimary, target }) => {
    isPressed = button === 0 && isPrimary && target.closest('a, button, summary') !== null;
  };
  addEventListener('pointerdown', press, true);
  for (const each of ['pointerup', 'pointercancel']) addEventListener(each, release, true);
  addEventListener('blur', release);
  options.debounceRendering = (redraw) => {
    if (isPressed) draw = redraw;
    else queueMicrotask(redraw);
  };
}

drawAfterPress();
recallPreferences();
followKeys();
followFocus();
// Relative times change every second, except under a selection.
setInterval(() => {
  if (!document.hidden && !isTextSelected()) setState();
}, 1000);
followAddress();
void begin();
render(html`<${Frame} />`, document.body);
