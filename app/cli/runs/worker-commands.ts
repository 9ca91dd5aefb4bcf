import type { Worker } from '../../../api/client/client.ts';
import { workerStates, type WorkerState } from '../../../domain/vocabulary.ts';
import { CommandError, exitCodes } from '../calling/command-errors.ts';
import { addList, readList } from '../calling/lists.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { choice } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { statePainter } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';

/** `svc workers …` */
export function addWorkerCommands(line: CommandLine): void {
  const group = line.group('workers', 'list, show and drain your own workers');
  addList(line, group, 'list', {
    description: 'list workers, newest first; with the scope ops, those of all agents',
    options: {
      state: choice('state', 'workers in this state (default: active)', workerStates),
    },
    examples: ['workers list', 'workers list --state silent'],
    path: () => '/workers',
    query: ({ state }) => ({ state }),
    columns: ({ paint }): readonly RecordColumn<Worker>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'NAME', maxWidth: 40, cell: ({ name }) => name },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(paint) },
      {
        title: 'TOOLS',
        maxWidth: 60,
        cell: ({ tools }) => tools.map(({ name }) => name).join(' '),
      },
      { title: 'LABELS', maxWidth: 40, cell: ({ labels }) => labelsText(labels) },
      { title: 'JOBS', align: 'right', cell: ({ jobs, slots }) => `${jobs.length} of ${slots}` },
      { title: 'LAST SEEN', cell: ({ last_seen_at }) => shortTime(last_seen_at) },
    ],
    noun: 'workers',
    none: 'no such worker',
  });
  line.add(group, 'show <worker>', {
    description: 'show a worker, by its id or name: its tools and its jobs',
    examples: ['workers show mailer-1', 'workers show 01a1fc55-…'],
    run: async (session, _, [wanted = '']) => {
      const worker = await findWorker(session, wanted);
      session.answer(worker, () => showWorker(session, worker));
    },
  });
  line.add(group, 'drain <worker>', {
    description: 'stop giving jobs to a worker, by its id or name; it may finish its current jobs',
    examples: ['workers drain mailer-1'],
    run: async (session, _, [wanted = '']) => {
      const { id } = await findWorker(session, wanted);
      await session.show(
        (api) => api.workers.drain(id),
        ({ message, details: { jobs } }) =>
          jobs === 0 ? message : `${message}; it still has ${jobs}`,
      );
    },
  });
}

/**
 * Finds the worker with an id or a name. An active worker is preferred to others of that name.
 * @throws CommandError if there is none, or several agents have a worker of that name
 */
async function findWorker(session: Session, wanted: string): Promise<Worker> {
  for (const state of workerStates) {
    const found = await workersNamed(session, state, wanted);
    const [first] = found;
    if (first === undefined) continue;
    if (found.length === 1) return first;
    const ids = found.map(({ id, agent_id }) => `${id} of agent ${agent_id}`).join(', ');
    const message = `several agents have a worker ${wanted}; give the id: ${ids}`;
    throw new CommandError(exitCodes.usage, message);
  }
  throw new CommandError(exitCodes.notFound, `there is no worker ${wanted}`);
}

async function workersNamed(
  { client }: Session,
  state: WorkerState,
  wanted: string,
): Promise<readonly Worker[]> {
  const { items } = await readList<Worker>(client, '/workers', { state }, { all: true });
  const withId = items.filter(({ id }) => id === wanted.toLowerCase());
  return withId.length > 0 ? withId : items.filter(({ name }) => name === wanted);
}

function showWorker(session: Session, worker: Worker): string {
  const { jobs, slots, tools } = worker;
  const parts = [
    session.fields([
      ['id', worker.id],
      ['name', worker.name],
      ['agent', worker.agent_id],
      ['state', worker.state],
      ['labels', labelsText(worker.labels)],
      ['jobs', `${jobs.length} of ${slots}`],
      ['last seen', shortTime(worker.last_seen_at)],
      ['registered', shortTime(worker.registered_at)],
      ['ended', shortTime(worker.ended_at)],
    ]),
    session.table<Worker['tools'][number]>(
      [
        { title: 'TOOL', cell: ({ name }) => name },
        { title: 'DESCRIPTION', maxWidth: 80, cell: ({ description }) => description },
      ],
      tools,
      'no tools',
    ),
  ];
  if (jobs.length > 0) {
    const table = session.table<Worker['jobs'][number]>(
      [
        { title: 'JOB', cell: ({ job_id }) => job_id },
        { title: 'RUN', cell: ({ run_id }) => run_id },
        { title: 'LEASED UNTIL', cell: ({ leased_until }) => shortTime(leased_until) },
      ],
      jobs,
      'no jobs',
    );
    parts.push(table);
  }
  return parts.join('\n\n');
}

const labelsText = (labels: Worker['labels']): string =>
  Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(' ');
