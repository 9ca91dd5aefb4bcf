// The buttons that approve or reject, and who may press them.

import { html } from '../../preact.js';
import { agentId, command, may } from '../../client.js';
import { ask } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';

const SCOPE = 'scope:';

/** Whether the agent may decide, by `approvers` of the step. */
const mayDecide = (approvers) =>
  approvers === null
    ? may('approvals:write')
    : approvers.some((each) =>
        each.startsWith(SCOPE) ? may(each.slice(SCOPE.length)) : each.toLowerCase() === agentId(),
      );

const commentField = {
  name: 'comment',
  label: 'Comment',
  type: 'textarea',
  rows: 3,
  maxlength: 2000,
};

const decisions = {
  Approve: { verb: 'approve', kind: 'main-action', text: 'The step succeeds.', done: 'Approved.' },
  Reject: { verb: 'reject', kind: 'danger', text: 'The step fails.', done: 'Rejected.' },
};

/**
 * Renders nothing for an agent that may not decide.
 * @param {{id: string, step: string, message: string, approvers: string[] | null}} approval that is pending
 * @param {() => Promise<void>} done called after the decision
 */
export function ApprovalButtons({ approval, done }) {
  const { id, step, message, approvers } = approval;
  if (!mayDecide(approvers)) return null;
  const button = (name) => {
    const { verb, kind, text, done: said } = decisions[name];
    const decide = async () => {
      const isDone = await ask({
        title: `${name}: ${message}`,
        text,
        action: name,
        kind,
        dismiss: 'Back',
        fields: [commentField],
        act: ({ comment }) =>
          command(`approvals/${id}/${verb}`, { body: comment === '' ? {} : { comment } }),
        done: said,
      });
      if (isDone) await done();
    };
    return html`<${Button} kind="${kind} small" label="${name}: ${message} (${step})" onClick=${decide}>
      ${name}
    <//>`;
  };
  return html`<div class="row">${button('Approve')} ${button('Reject')}</div>`;
}
