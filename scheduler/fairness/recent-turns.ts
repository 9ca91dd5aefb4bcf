import type { Party } from './fair-queue.ts';

/** The most agents that are remembered. Beyond that, all are forgotten, which only affects the order. */
const MAX_REMEMBERED = 10_000;

/** When namespaces and agents last had a turn, in several queues together. */
export class RecentTurns {
  readonly #namespaces = new Map<string, number>();
  readonly #agents = new Map<string, number>();
  #turn = 0;

  /** Notes that a party has a turn now. */
  note({ namespace, agent }: Party): void {
    if (this.#agents.size >= MAX_REMEMBERED) {
      this.#agents.clear();
      this.#namespaces.clear();
    }
    this.#turn += 1;
    this.#namespaces.set(namespace, this.#turn);
    this.#agents.set(agent, this.#turn);
  }

  /** Negative if the first party's namespace, or within one namespace its agent, has waited longer for a turn. */
  compare(one: Party, other: Party): number {
    if (one.namespace !== other.namespace) {
      return turnOf(this.#namespaces, one.namespace) - turnOf(this.#namespaces, other.namespace);
    }
    return turnOf(this.#agents, one.agent) - turnOf(this.#agents, other.agent);
  }
}

const turnOf = (turns: ReadonlyMap<string, number>, key: string): number => turns.get(key) ?? 0;
