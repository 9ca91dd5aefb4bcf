import { expect } from 'chai';
import { fromIso, toIso, type Instant } from '../../../../domain/clock.ts';
import type { RecordedEvent } from '../../../../domain/event-store.ts';
import type { FiresEvent, RunEvent, TaskEvent } from '../../../../domain/events/catalogue.ts';
import { decideFires, ruleInForce } from '../../../../domain/tasks/fires.ts';
import { toNewEvents, type CommandContext } from '../../../../domain/handle.ts';
import { newId, triggeredRunId } from '../../../../domain/ids.ts';
import { missedOrder, operationsFold } from '../../../../domain/operators/operations.ts';
import {
  evolveScheduleState,
  type ScheduleState,
} from '../../../../domain/tasks/schedule-state.ts';
import { requestRun } from '../../../../domain/runs/run-request.ts';
import { streams } from '../../../../domain/streams.ts';
import { requireTask, taskFold } from '../../../../domain/tasks/task.ts';
import { scheduleOf } from '../../../../domain/tasks/task-schedule.ts';
import { load } from '../../../../domain/handle.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import type { RunningApi, SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

export const minute = 60_000;
export const hour = 60 * minute;

/**
 * A running interface with a virtual clock and stand-ins for the missing parts of the service. Its
 * scheduler decides on request by the real rules, and its worker records results.
 */
export class ExplainedWorld {
  readonly api: RunningApi;
  readonly person: SignedIn;
  /** All explanations so far. */
  readonly said: string[] = [];

  private constructor(api: RunningApi, person: SignedIn) {
    this.api = api;
    this.person = person;
  }

  /** @param start initial time; not before the machine's */
  static async open(api: RunningApi, start: string): Promise<ExplainedWorld> {
    api.clock.shift(fromIso(start) - api.clock.now());
    return new ExplainedWorld(api, await api.signIn(['admin'], 'ada'));
  }

  /** The next full hour. */
  get nextHour(): Instant {
    return Math.ceil(this.api.clock.now() / hour) * hour;
  }

  /** Advances the time to an instant. */
  until(instant: Instant): this {
    this.api.clock.shift(instant - this.api.clock.now());
    return this;
  }

  async create(fields: object = {}): Promise<string> {
    const answer = await this.person.client.post('/tasks', {
      ...plainTask(this.person.id),
      ...fields,
    });
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.textAt('id');
  }

  /** Sends a command on a task with the caller's reason. */
  async command(
    task: string,
    command: string,
    body?: object,
    reason?: string,
  ): Promise<ReceivedResponse> {
    const headers = reason === undefined ? {} : { 'x-reason': reason };
    const answer = await this.person.client.post(`/tasks/${task}/${command}`, body, { headers });
    if (answer.status !== 200) throw new Error(answer.text);
    return answer;
  }

  /** The response of the interface for a task and an instant. */
  async explain(task: string, at: Instant | string): Promise<ReceivedResponse> {
    const text = encodeURIComponent(typeof at === 'number' ? toIso(at) : at);
    const answer = await this.person.client.get(`/tasks/${task}/explain?at=${text}`);
    if (answer.status !== 200) throw new Error(answer.text);
    this.said.push(answer.textAt('message'));
    return answer;
  }

  /** Decides a task's due fires, and requests their runs. @returns their ids */
  async decide(task: string, tzVersion?: string): Promise<readonly string[]> {
    const { store, clock } = this.api;
    const requested: string[] = [];
    for (;;) {
      const now = clock.now();
      const schedule = await this.#scheduleState(task);
      const { definition, anchor } = ruleInForce(schedule);
      const { state } = await load(store, streams.task(task), taskFold);
      const whole = { ...requireTask(state).definition, ...definition };
      const decision = decideFires(
        task,
        schedule,
        scheduleOf(whole, anchor),
        now,
        missedOrder((await load(store, streams.operations(), operationsFold)).state),
      );
      if (decision.events.length === 0) return requested;
      const context = { ...this.#context('scheduler'), tzVersion };
      const stream = streams.fires(task);
      const expected = schedule.fires?.revision ?? 'none';
      await store.append(stream, toNewEvents(stream, decision.events, context), expected);
      for (const { runId, request } of decision.runs) {
        await requestRun(store, {
          runId,
          request,
          rules: definition,
          context: this.#context('scheduler'),
        });
        requested.push(runId);
      }
    }
  }

  async #scheduleState(task: string): Promise<ScheduleState> {
    const { store } = this.api;
    const both: readonly RecordedEvent[] = [
      ...(await store.readStream(streams.task(task))),
      ...(await store.readStream(streams.fires(task))),
    ].sort((a, b) => (a.position < b.position ? -1 : 1));
    const schedule = both.reduce<ScheduleState | null>(
      (state, event) =>
        evolveScheduleState(state, event as unknown as TaskEvent | FiresEvent, event),
      null,
    );
    if (schedule === null) throw new Error(`there is no task ${task}`);
    return schedule;
  }

  /** The runs of a task for an event on a topic. */
  async trigger(task: string, topic: string): Promise<string> {
    const { store, clock } = this.api;
    const { state } = await load(store, streams.task(task), taskFold);
    const { definition, revision } = requireTask(state);
    const id = newId(clock.now());
    const published_at = toIso(clock.now());
    const event = { id, topic, payload: {}, source_agent_id: this.person.id, published_at };
    const runId = triggeredRunId(task, id);
    const request = {
      task_id: task,
      task_revision: revision,
      created_by: definition.created_by,
      trigger: 'event' as const,
      scheduled_for: null,
      priority: definition.priority,
      run_at: published_at,
      event,
      retry_of: null,
      prior_steps: [],
      overlap_policy: definition.overlap_policy,
    };
    const context = this.#context('scheduler');
    await requestRun(store, { runId, request, rules: definition, context });
    return runId;
  }

  /** A worker takes a run and finishes it after `seconds`. */
  async work(task: string, run: string, seconds: number, error?: string): Promise<void> {
    const { api } = this;
    const started_at = toIso(api.clock.now());
    const leased_until = toIso(api.clock.now() + 30_000);
    await this.append(run, { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until } });
    api.clock.shift(seconds * 1000);
    const ended = { task_id: task, started_at, attempt: 1, steps: [], output: {} };
    await this.append(
      run,
      error === undefined
        ? { type: 'RunSucceeded', data: ended }
        : { type: 'RunFailed', data: { ...ended, error, step: null } },
    );
  }

  /** Appends to a run's stream, as a worker does. */
  append(run: string, event: RunEvent): Promise<void> {
    return this.api.append(streams.run(run), [event]);
  }

  #context(source: string): CommandContext {
    const now = this.api.clock.now();
    const commandId = newId(now);
    return { commandId, actor: 'service', source, correlationId: commandId, now };
  }
}

/** An explanation without its variable parts: ids, instants, numbers, reasons. */
export function patternOf(message: string): string {
  return message
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\) \([^)]*\)/g, ') (…)')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?/g, 'TIME')
    .replace(/\d+ (?:d|h|min|s)(?: \d+ (?:h|min|s))?\b/g, 'A WHILE')
    .replace(/\b\d+\b/g, 'N');
}

/** Types of the events behind an explanation. */
export function typesIn(answer: ReceivedResponse): readonly string[] {
  return (answer.json['evidence'] as { type: string }[]).map(({ type }) => type);
}

export function expectReason(answer: ReceivedResponse, reason: string | null, fired = false): void {
  expect(answer.at('reason'), answer.text).to.equal(reason);
  expect(answer.at('fired'), answer.text).to.equal(fired);
}

/** @param words that the message contains; its instants are in UTC */
export function expectWords(
  answer: ReceivedResponse,
  ...words: readonly (string | Instant)[]
): void {
  for (const word of words) {
    const text = typeof word === 'number' ? toIso(word).replace('.000Z', 'Z') : word;
    expect(answer.textAt('message')).to.contain(text);
  }
}
