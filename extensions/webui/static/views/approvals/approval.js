// One approval: the question, who may decide, and the decision. Live until then.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { useData } from '../../data.js';
import { LiveMark, useLive } from '../../live.js';
import { learnTitles } from '../../names.js';
import { State } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance, RunLink, TaskLink } from '../../ui/names.js';
import { ApprovalButtons } from './approval-buttons.js';
import { Approvers } from './approvals.js';

/** The interval of reads, in milliseconds. */
const BEAT = 10_000;

export function ApprovalView({ id }) {
  const approval = useData(
    async (signal, after) => {
      const read = await call('GET', `approvals/${id}`, { query: { after }, signal });
      await learnTitles([read.task_id], signal);
      return read;
    },
    [],
    { every: BEAT },
  );
  const { data } = approval;
  const follows = may('runs:read') && data?.state === 'pending';
  const live = useLive(follows ? `tasks/${data.task_id}/live` : null, (name, { run, position }) => {
    if (name === 'live.started' || run?.id === data.run_id) approval.refresh(position);
  });
  return html`<${LoadedView} of=${approval}>
    ${(each) => html`<${Approval} approval=${each} live=${follows ? live : null} done=${approval.reload} />`}
  <//>`;
}

function Approval({ approval, live, done }) {
  const { message, state, comment, approvers, decided_by: agent } = approval;
  const time = (at) => html`<${InstantAndDistance} at=${at} />`;
  const facts = [
    ['Task', html`<${TaskLink} id=${approval.task_id} />`],
    ['Run', html`<${RunLink} id=${approval.run_id} />`],
    ['Step', html`<code>${approval.step}</code>`],
    ['Requested', time(approval.requested_at)],
    state === 'pending' && ['Expires', time(approval.expires_at)],
    ['Approvers', html`<${Approvers} of=${approvers} names=${approval.approver_names} />`],
    agent !== null && [
      'Decided by',
      html`<${Actor} id=${agent} name=${approval.decided_by_name} />`,
    ],
    approval.decided_at !== null && ['Decided', time(approval.decided_at)],
    comment !== null && ['Comment', comment],
    ['ID', html`<code>${approval.id}</code>`],
  ];
  const beside = html`<${State} of=${state} />${live !== null && html`<${LiveMark} state=${live} />`}`;
  return html`<${Heading} title=${message} beside=${beside}>
      ${state === 'pending' && html`<${ApprovalButtons} approval=${approval} done=${done} />`}
    <//>
    <${Section} title="Approval"><${Facts} of=${facts} /><//>`;
}
