import type { Approval } from '../../../api/client/client.ts';
import { approvalStates } from '../../../domain/vocabulary.ts';
import { addList } from '../calling/lists.ts';
import type { RecordColumn } from '../calling/session.ts';
import { choice, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { statePainter } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';

/** `svc approvals …` */
export function addApprovalCommands(line: CommandLine): void {
  const group = line.group('approvals', 'list, grant and reject the approvals that steps wait for');
  addList(line, group, 'list', {
    description: 'list approvals, newest first',
    options: {
      state: choice('state', 'approvals in this state', approvalStates),
      task: text('id', 'approvals of this task'),
      run: text('id', 'approvals of this run'),
    },
    examples: ['approvals list --state pending'],
    path: () => '/approvals',
    query: ({ state, task, run }) => ({ state, task_id: task, run_id: run }),
    columns: ({ paint }): readonly RecordColumn<Approval>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(paint) },
      { title: 'STEP', maxWidth: 30, cell: ({ step }) => step },
      { title: 'MESSAGE', maxWidth: 60, cell: ({ message }) => message },
      { title: 'EXPIRES', cell: ({ expires_at }) => shortTime(expires_at) },
      { title: 'DECIDED BY', cell: ({ decided_by }) => decided_by },
      { title: 'COMMENT', maxWidth: 40, cell: ({ comment }) => comment },
    ],
    noun: 'approvals',
  });
  for (const [verdict, description] of [
    ['approve', 'approve: the step that asked for it succeeds'],
    ['reject', 'reject: the step that asked for it fails'],
  ] as const) {
    line.add(group, `${verdict} <id>`, {
      description,
      options: { comment: text('text', 'why; part of the result of the step') },
      examples: [`approvals ${verdict} 01a1fc55-… --comment 'checked the invoice'`],
      run: (session, { comment }, [id = '']) =>
        session.done((api) => api.approvals[verdict](id, { comment })),
    });
  }
}
