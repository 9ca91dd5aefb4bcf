import type { Clock, Instant } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';

/** Milliseconds between looks at who is alive for the sake of somebody who is not known here, and at the clock. */
const LOOK_EVERY = 1000;

/**
 * A process's life among the others: one heartbeat for all that it does, and who else is alive. A worker
 * whose heartbeat could not be renewed in time must count itself as gone, as the others do.
 */
export class Membership {
  readonly id: string;
  /** Milliseconds that a heartbeat lasts. */
  readonly lease: number;
  private readonly coordination: Coordination;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly about: JsonObject;
  private readonly present: () => JsonObject;
  /** Called when this member counts as alive (again). */
  onAlive: () => void = () => {};
  private renewedAt: Instant = Number.NEGATIVE_INFINITY;
  /** While this member was away, the others may have been so too: until then it can't tell who is gone. */
  private inDoubtUntil: Instant = Number.NEGATIVE_INFINITY;
  private members: ReadonlyMap<string, Instant> = new Map();
  private lookedAt: Instant = Number.NEGATIVE_INFINITY;
  /** Who was looked for and is no member, since the last heartbeat. */
  private readonly strangers = new Set<string>();

  constructor(options: {
    readonly id: string;
    readonly lease: number;
    readonly about: JsonObject;
    /** Said beside `about`, and asked anew at each heartbeat. Default: nothing. */
    readonly present?: () => JsonObject;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.id = options.id;
    this.lease = options.lease;
    this.about = options.about;
    this.present = options.present ?? (() => ({}));
    this.coordination = options.coordination;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
  }

  /**
   * Joins, renews at a third of the lease, and soon after the clock was set, until the signal is aborted; then leaves.
   * Never rejects.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, lease } = this;
    let triedAt = Number.NEGATIVE_INFINITY;
    let setBy = 0;
    while (!signal.aborted) {
      const steady = clock.steady();
      const ahead = clock.now() - steady;
      // By a clock that was set, its heartbeat has run out, or counts for nothing to the others.
      if (steady - triedAt >= lease / 3 || Math.abs(ahead - setBy) > LOOK_EVERY) {
        triedAt = steady;
        setBy = ahead;
        await this.tryToBeat();
      }
      await clock.sleep(Math.min(lease / 3, LOOK_EVERY), signal).catch(() => {});
    }
    try {
      await this.coordination.forget(this.id);
    } catch (error) {
      this.telemetry.log.warn('could not leave; the heartbeat runs out by itself', { error });
    }
  }

  private async tryToBeat(): Promise<void> {
    try {
      await this.beat();
    } catch (error) {
      this.telemetry.count('lease_failures_total', { lease: 'heartbeat' });
      this.telemetry.log.warn('the heartbeat could not be renewed', { error });
    }
  }

  /** Until when this member counts as alive. */
  get leasedUntil(): Instant {
    return this.renewedAt + this.lease;
  }

  /** Whether the others still count on this one. */
  get alive(): boolean {
    return this.clock.now() < this.leasedUntil;
  }

  /**
   * Whether this member may take others for gone. One that was away itself (the machine slept, or its clock was put
   * forward) finds everybody's heartbeat run out, and gives them a lease to say that they are alive.
   */
  get canTell(): boolean {
    const now = this.clock.now();
    // Further ahead than a lease: the clock was put back.
    return this.alive && (now >= this.inDoubtUntil || this.inDoubtUntil - now > this.lease);
  }

  /** Whether somebody is alive, or has said so for a time that has not passed yet. */
  isAlive(id: string): boolean {
    return id === this.id ? this.alive : (this.members.get(id) ?? 0) > this.clock.now();
  }

  /**
   * Somebody has written to the log. One who is not known here may have joined since the last heartbeat: then the others
   * are looked at now, so that who came later gets its share of the work at once.
   */
  noticed(id: string): void {
    if (id === this.id || this.members.has(id) || this.strangers.has(id) || !this.alive) return;
    const now = this.clock.now();
    // Either way: the clock may have been put back.
    if (Math.abs(now - this.lookedAt) < LOOK_EVERY) return;
    this.lookedAt = now;
    void this.look().then(
      () => {
        if (!this.members.has(id)) this.strangers.add(id);
      },
      (error: unknown) => {
        this.telemetry.log.warn('could not see who is alive; the next heartbeat does', { error });
      },
    );
  }

  /** Ids of those who are alive and do something, this one included. */
  doing(role: string): readonly string[] {
    return this.roles.get(role) ?? [];
  }

  private roles: ReadonlyMap<string, readonly string[]> = new Map();

  private async beat(): Promise<void> {
    // Before the call: what the store grants counts from a moment that lies behind this one.
    const asked = this.clock.now();
    await this.coordination.heartbeat(this.id, { ...this.about, ...this.present() }, this.lease);
    const joined = !this.alive;
    if (joined && Number.isFinite(this.renewedAt)) this.inDoubtUntil = asked + this.lease;
    this.renewedAt = asked;
    this.strangers.clear();
    try {
      await this.look();
    } finally {
      // Also where the others can't be seen: by the next heartbeat it has not joined any more.
      if (joined) this.onAlive();
    }
  }

  /** Takes in who is alive. */
  private async look(): Promise<void> {
    const alive = await this.coordination.alive();
    const now = this.clock.now();
    const members = new Map(alive.map((member) => [member.id, now + member.remaining]));
    // Who is missing though its heartbeat had time left has not died: what the store knew was lost, as it may be.
    for (const [id, until] of this.members) {
      if (!members.has(id) && until > now) members.set(id, Math.min(until, now + this.lease));
    }
    this.members = members;
    const roles = new Map<string, string[]>();
    for (const { id, about } of alive) {
      for (const role of Array.isArray(about['roles']) ? about['roles'] : []) {
        roles.set(String(role), [...(roles.get(String(role)) ?? []), id]);
      }
    }
    this.roles = roles;
  }
}
