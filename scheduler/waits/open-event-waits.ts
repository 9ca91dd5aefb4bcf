import type { Instant } from '../../domain/clock.ts';
import type { Position } from '../../domain/event-store.ts';
import { equalityKey, requiredEquality, valueAt } from '../../domain/pipeline/required-equality.ts';
import { compileTopicPattern, type TopicPattern } from '../../domain/schedule/topic-pattern.ts';

/** An open wait for an event. */
export interface EventWait {
  readonly runId: string;
  readonly waitId: string;
  /** The namespace of its run; only events of this namespace count. */
  readonly namespace: string;
  /** A pattern. */
  readonly topic: string;
  /** null: every event of the topic counts. */
  readonly condition: string | null;
  readonly sinceRun: boolean;
  /** Events published later do not count. */
  readonly until: Instant;
  /** The position after which events count; null: not known yet. */
  from: Position | null;
}

/** The waits of one pattern. */
class PatternWaits {
  readonly pattern: TopicPattern;
  readonly #any = new Set<EventWait>();
  /** Waits by path, and by the value that the path must have. */
  readonly #equal = new Map<string, EqualWaits>();
  size = 0;

  constructor(topic: string) {
    this.pattern = compileTopicPattern(topic);
  }

  add(wait: EventWait): void {
    this.size += 1;
    const equality = wait.condition === null ? null : requiredEquality(wait.condition);
    if (equality === null) {
      this.#any.add(wait);
      return;
    }
    const name = equality.path.join('\n');
    let waits = this.#equal.get(name);
    if (waits === undefined) {
      waits = { path: equality.path, byKey: new Map() };
      this.#equal.set(name, waits);
    }
    const same = waits.byKey.get(equality.key);
    if (same === undefined) waits.byKey.set(equality.key, new Set([wait]));
    else same.add(wait);
  }

  delete(wait: EventWait): void {
    this.size -= 1;
    if (this.#any.delete(wait)) return;
    const equality = wait.condition === null ? null : requiredEquality(wait.condition);
    if (equality === null) return;
    const name = equality.path.join('\n');
    const waits = this.#equal.get(name);
    const same = waits?.byKey.get(equality.key);
    same?.delete(wait);
    if (same?.size === 0) waits?.byKey.delete(equality.key);
    if (waits?.byKey.size === 0) this.#equal.delete(name);
  }

  collect(scope: object, into: EventWait[]): void {
    for (const wait of this.#any) into.push(wait);
    for (const { path, byKey } of this.#equal.values()) {
      const key = equalityKey(valueAt(path, scope) ?? null);
      for (const wait of (key === null ? null : byKey.get(key)) ?? []) into.push(wait);
    }
  }
}

interface EqualWaits {
  readonly path: readonly string[];
  readonly byKey: Map<string, Set<EventWait>>;
}

/** The waits of one namespace, by topic or pattern. */
interface NamespaceWaits {
  readonly exact: Map<string, PatternWaits>;
  readonly patterns: Map<string, PatternWaits>;
}

/** The open waits for events, by namespace, topic and the value that their condition requires. */
export class OpenEventWaits {
  readonly #byId = new Map<string, EventWait>();
  readonly #namespaces = new Map<string, NamespaceWaits>();

  get size(): number {
    return this.#byId.size;
  }

  has(waitId: string): boolean {
    return this.#byId.has(waitId);
  }

  all(): IterableIterator<EventWait> {
    return this.#byId.values();
  }

  /** @throws ScheduleError for an invalid pattern */
  add(wait: EventWait): void {
    const groups = this.#groupsOf(wait);
    let group = groups.get(wait.topic);
    if (group === undefined) {
      group = new PatternWaits(wait.topic);
      groups.set(wait.topic, group);
    }
    group.add(wait);
    this.#byId.set(wait.waitId, wait);
  }

  delete(waitId: string): void {
    const wait = this.#byId.get(waitId);
    if (wait === undefined) return;
    this.#byId.delete(waitId);
    const groups = this.#groupsOf(wait);
    const group = groups.get(wait.topic);
    group?.delete(wait);
    if (group?.size === 0) groups.delete(wait.topic);
  }

  /**
   * The waits of a namespace whose topic matches and whose condition may be true.
   * @param scope the names of a condition
   */
  candidates(namespace: string, topic: string, scope: object): readonly EventWait[] {
    const found: EventWait[] = [];
    const waits = this.#namespaces.get(namespace);
    waits?.exact.get(topic)?.collect(scope, found);
    for (const group of waits?.patterns.values() ?? []) {
      if (group.pattern.matches(topic)) group.collect(scope, found);
    }
    return found;
  }

  #groupsOf({ namespace, topic }: EventWait): Map<string, PatternWaits> {
    const waits = this.#namespaces.get(namespace) ?? { exact: new Map(), patterns: new Map() };
    this.#namespaces.set(namespace, waits);
    return /[*#]/.test(topic) ? waits.patterns : waits.exact;
  }
}
