import type { Command } from 'commander';
import { retryStarts, runStates, runTriggers } from '../../../domain/vocabulary.ts';
import { usageError } from '../calling/command-errors.ts';
import { addList } from '../calling/lists.ts';
import type { RunRecord } from '../calling/records.ts';
import type { RecordColumn } from '../calling/session.ts';
import { asOf, choice, flag, text, view } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { addHistory } from '../records/history-commands.ts';
import { statePainter } from '../terminal/paint.ts';
import { between, shortTime } from '../terminal/units.ts';
import { followRun, followRuns } from './follow-runs.ts';
import { paramOptions, paramsOf } from './run-params.ts';
import { addBulkCommands } from './bulk-commands.ts';
import { addExplainCommands } from './explain-commands.ts';
import { saveArtifact } from './run-artifact.ts';
import { showRun } from './run-screen.ts';
import { searchOf, searchOptions } from './run-search-options.ts';
import { awaited, openWaits } from './run-steps.ts';

const from = choice('step', 'where the new run starts', retryStarts);

/** `svc runs …` */
export function addRunCommands(line: CommandLine): void {
  const group = line.group('runs', 'list, search, show, explain, cancel and retry runs');
  addRunList(line, group);
  line.add(group, 'show <id>', {
    description: 'show a run with its attempts, steps, log and output',
    options: { asOf },
    examples: ['runs show ce89cf0f-…'],
    run: (session, { asOf: as_of }, [id = '']) =>
      session.show(
        (api) => api.runs.get(id, { as_of }),
        (run) => showRun(session, run),
      ),
  });
  addHistory(line, group, 'runs');
  addExplainCommands(line, group);
  line.add(group, 'artifact <id> <artifact>', {
    description: 'print or save a large result that the run shows as a reference',
    options: { output: text('file', 'file for the JSON (default: standard output)') },
    examples: ['runs artifact ce89cf0f-… 9f86d081… --output orders.json'],
    run: (session, { output }, [id = '', artifact = '']) =>
      saveArtifact(session, id, artifact, output),
  });
  line.add(group, 'follow [id]', {
    description: 'follow a run until it ends (exit code 1 if it fails), or all runs',
    options: {
      task: text('id', 'follow all runs of this task'),
      state: choice('state', 'follow changes to this state', runStates),
    },
    examples: ['runs follow ce89cf0f-…', 'runs follow --state failed', 'runs follow --json'],
    run: async (session, { task, state }, [id]) => {
      if (id === undefined) {
        return session.following(() => followRuns(session, { task_id: task, state }));
      }
      if ((task ?? state) === undefined) return session.following(() => followRun(session, id));
      throw usageError('--task and --state cannot be used with a run id');
    },
  });
  line.add(group, 'cancel <id>', {
    description: 'cancel an unfinished run',
    examples: ['runs cancel ce89cf0f-…'],
    run: (session, _, [id = '']) => session.done((api) => api.runs.cancel(id)),
  });
  line.add(group, 'retry <id>', {
    description: 'start a new run for a failed one, from the failed step on',
    options: {
      from,
      step: text('id', 'start with this step instead; earlier steps keep their results'),
      ...paramOptions,
    },
    examples: ['runs retry ce89cf0f-… --from start', 'runs retry ce89cf0f-… --param limit=5'],
    run: async (session, { from: start, step, ...options }, [id = '']) => {
      const params = await paramsOf(options, session.environment);
      await session.show(
        (api) => api.runs.retry(id, { from: start, step, params }),
        ({ message, details }) => `${message}: ${details.run_id}`,
      );
    },
  });
  addBulkCommands(line, group);
}

function addRunList(line: CommandLine, group: Command): void {
  addList(line, group, 'list', {
    description: 'list runs, newest first; skipped runs only with --state skipped',
    options: {
      task: text('id', 'runs of this task'),
      state: choice('state', 'runs in this state', runStates),
      trigger: choice('trigger', 'runs with this trigger', runTriggers),
      parent: text('id', 'child runs of this run'),
      since: text('instant', 'started after this'),
      until: text('instant', 'started before this; with --task, a date includes that day'),
      ...searchOptions,
      errors: flag('show whole errors'),
      view,
    },
    examples: [
      'runs list --state failed --since 2026-11-20T00:00Z',
      'runs list --error "no space left" --since 2026-11-20T00:00Z',
      'runs ls --task 01a1fc11-… --input order-4711',
    ],
    path: () => '/runs',
    query: ({ task, state, trigger, parent, since, until, errors, view: name, ...search }) => {
      const times = { start_time: since, end_time: until };
      const of = { task_id: task, parent_run_id: parent, state, trigger };
      return { ...of, ...times, ...searchOf(search), include_errors: errors, view: name };
    },
    columns: ({ paint }, { errors, state: wanted }): readonly RecordColumn<RunRecord>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'TASK', cell: ({ task_id }) => task_id },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(paint) },
      { title: 'TRIGGER', cell: ({ trigger }) => trigger },
      { title: 'STARTED', cell: (run) => shortTime(run.started_at ?? run.run_at) },
      { title: 'TOOK', align: 'right', cell: (run) => between(run.started_at, run.finished_at) },
      { title: 'ATTEMPT', align: 'right', cell: ({ attempt }) => attempt },
      wanted === 'waiting'
        ? {
            title: 'WAITS FOR',
            maxWidth: 100,
            cell: (run) => openWaits(run).map(awaited).join('; '),
          }
        : {
            title: 'ERROR',
            ...(errors === true ? {} : { maxWidth: 60 }),
            cell: ({ error, skip_reason }) => error ?? skip_reason,
          },
    ],
    noun: 'runs',
  });
}
