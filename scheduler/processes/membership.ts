import type { Clock, Instant } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';

/** The messages that report failures. */
const FAILURE = 'could not renew the heartbeat';
const NOT_LISTED = 'could not list live processes; the next heartbeat retries';

/** The interval of lookups of other members because of an unknown writer, and of checks of the clock. Milliseconds. */
const CHECK_INTERVAL = 1000;

/**
 * This process as a member of the cluster: a single heartbeat for all its work, and the list of live processes. A
 * worker whose heartbeat was not renewed in time counts itself as dead, as other members do.
 */
export class Membership {
  readonly id: string;
  /** Milliseconds that a heartbeat lasts. */
  readonly lease: number;
  readonly #options: ConstructorParameters<typeof Membership>[0];
  #renewedAt: Instant = Number.NEGATIVE_INFINITY;
  /**
   * Until this time, this member cannot judge the heartbeats of others. After an interruption, they may be as old as
   * its own.
   */
  #inDoubtUntil: Instant = Number.NEGATIVE_INFINITY;
  /** When the heartbeats of live members end. */
  #members: ReadonlyMap<string, Instant> = new Map();
  #roles: ReadonlyMap<string, readonly string[]> = new Map();
  #checkedAt: Instant = Number.NEGATIVE_INFINITY;
  /** Unknown writers that turned out to be no members, since the last heartbeat. */
  readonly #strangers = new Set<string>();

  constructor(options: {
    readonly id: string;
    readonly lease: number;
    readonly about: JsonObject;
    /** Published beside `about`, and called at each heartbeat. Default: nothing. */
    readonly present?: () => JsonObject;
    /** Called when this member counts as alive, also after an interruption. Default: does nothing. */
    readonly onAlive?: () => void;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.#options = options;
    this.id = options.id;
    this.lease = options.lease;
  }

  /**
   * Joins, and renews the heartbeat every third of its time and soon after the clock was set, until the signal is
   * aborted; then leaves. Never rejects.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { coordination, clock, telemetry } = this.#options;
    const { lease } = this;
    let triedAt = Number.NEGATIVE_INFINITY;
    let setBy = 0;
    while (!signal.aborted) {
      const steady = clock.steady();
      const ahead = clock.now() - steady;
      // After a change of the clock, other members see the heartbeat as expired or void.
      if (steady - triedAt >= lease / 3 || Math.abs(ahead - setBy) > CHECK_INTERVAL) {
        triedAt = steady;
        setBy = ahead;
        try {
          await this.#beat();
          telemetry.failures.worked(FAILURE);
        } catch (error) {
          telemetry.count('lease_failures_total', { lease: 'heartbeat' });
          telemetry.failures.failed(FAILURE, error);
        }
      }
      await clock.sleep(Math.min(lease / 3, CHECK_INTERVAL), signal).catch(() => {});
    }
    try {
      await coordination.forget(this.id);
    } catch (error) {
      telemetry.failures.failed('could not leave; the heartbeat expires by itself', error);
    }
  }

  /** The time until which this member counts as alive. */
  get leasedUntil(): Instant {
    return this.#renewedAt + this.lease;
  }

  /** Whether this member counts as alive for the others. */
  get alive(): boolean {
    return this.#options.clock.now() < this.leasedUntil;
  }

  /**
   * Whether this member may count others as gone. After an interruption (the machine slept, or its clock was set
   * forward) all heartbeats look expired, and the others get a lease to renew them.
   */
  get canDeclareOthersDead(): boolean {
    const now = this.#options.clock.now();
    // The time is further ahead than a lease, so the clock was set back.
    return this.alive && (now >= this.#inDoubtUntil || this.#inDoubtUntil - now > this.lease);
  }

  /** Whether a member is alive, or has a heartbeat that has not expired yet. */
  isAlive(id: string): boolean {
    return id === this.id ? this.alive : (this.#members.get(id) ?? 0) > this.#options.clock.now();
  }

  /**
   * Notes that a process has written to the log. An unknown process may have just joined, and then gets its share of
   * work at once.
   */
  noteWriter(id: string): void {
    const { clock, telemetry } = this.#options;
    if (id === this.id || this.#members.has(id) || this.#strangers.has(id) || !this.alive) return;
    const now = clock.now();
    // In either direction: the clock may have been set back.
    if (Math.abs(now - this.#checkedAt) < CHECK_INTERVAL) return;
    this.#checkedAt = now;
    void this.#refresh().then(
      () => {
        if (!this.#members.has(id)) this.#strangers.add(id);
      },
      (error: unknown) => {
        telemetry.failures.failed(NOT_LISTED, error);
      },
    );
  }

  /** Ids of the live members with a role, this one included. */
  withRole(role: string): readonly string[] {
    return this.#roles.get(role) ?? [];
  }

  async #beat(): Promise<void> {
    const { coordination, clock, about, present, onAlive } = this.#options;
    // Taken before the call, because the store counts from a later time.
    const asked = clock.now();
    await coordination.heartbeat(this.id, { ...about, ...present?.() }, this.lease);
    const joined = !this.alive;
    if (joined && Number.isFinite(this.#renewedAt)) this.#inDoubtUntil = asked + this.lease;
    this.#renewedAt = asked;
    this.#strangers.clear();
    try {
      await this.#refresh();
    } finally {
      // Done even if this fails, because the next heartbeat must not revive a member that is leaving.
      if (joined) onAlive?.();
    }
  }

  async #refresh(): Promise<void> {
    const { coordination, clock, telemetry } = this.#options;
    const alive = await coordination.alive();
    telemetry.failures.worked(NOT_LISTED);
    const now = clock.now();
    const members = new Map(alive.map((member) => [member.id, now + member.remaining]));
    // A member whose heartbeat has not expired is alive. If it is missing, the store has lost it.
    for (const [id, until] of this.#members) {
      if (!members.has(id) && until > now) members.set(id, Math.min(until, now + this.lease));
    }
    this.#members = members;
    const roles = new Map<string, string[]>();
    for (const { id, about } of alive) {
      for (const role of Array.isArray(about['roles']) ? about['roles'] : []) {
        roles.set(String(role), [...(roles.get(String(role)) ?? []), id]);
      }
    }
    this.#roles = roles;
  }
}
