import type { Doc } from './wire.ts';

/** What is to go wrong, with which command, and how. */
export interface FaultRule {
  /** The command's name as the driver sends it, such as `update`; `*` for every one, `hello` too. */
  readonly command: string;
  /** Only for this collection. */
  readonly collection?: string;
  /** Only for commands that this accepts. */
  readonly when?: (command: Doc) => boolean;
  /** How many commands it hits; default 1. */
  readonly times?: number;
  readonly effect: FaultEffect;
}

export type FaultEffect =
  /** The command is refused with an error, and not executed. */
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly codeName: string;
      readonly message: string;
      readonly labels?: readonly string[];
    }
  /** The command is answered with this, and not executed. */
  | { readonly kind: 'answer'; readonly reply: Doc }
  /** The connection breaks: before the command is executed, or after it without an answer. */
  | { readonly kind: 'drop'; readonly executed: boolean }
  /** Something happens first (synchronously), then the command is executed as ever. */
  | { readonly kind: 'interpose'; readonly act: () => void }
  /** Nothing happens until the fault is released; then the command is executed and answered. */
  | { readonly kind: 'hold' };

/** A fault that was set. */
export interface Fault {
  /** Resolves when a command met it first. */
  readonly met: Promise<void>;
  /** Takes it away; commands that it holds go on. */
  release(): void;
}

interface ActiveFault {
  readonly rule: FaultRule;
  left: number;
  readonly meet: () => void;
  readonly released: Promise<void>;
}

/** The faults of one server. */
export class Faults {
  readonly #active = new Set<ActiveFault>();

  set(rule: FaultRule): Fault {
    let meet = (): void => {};
    let free = (): void => {};
    const met = new Promise<void>((resolve) => (meet = resolve));
    const released = new Promise<void>((resolve) => (free = resolve));
    const fault: ActiveFault = { rule, left: rule.times ?? 1, meet, released };
    this.#active.add(fault);
    return {
      met,
      release: () => {
        this.#active.delete(fault);
        free();
      },
    };
  }

  /** The fault that a command meets now, which is used up by that. */
  meet(
    command: Doc,
  ): { readonly effect: FaultEffect; readonly released: Promise<void> } | undefined {
    const name = Object.keys(command)[0] ?? '';
    for (const fault of this.#active) {
      const { rule } = fault;
      if (rule.command !== '*' && rule.command !== name) continue;
      if (rule.collection !== undefined && command[name] !== rule.collection) continue;
      if (rule.when !== undefined && !rule.when(command)) continue;
      fault.left -= 1;
      if (fault.left <= 0) this.#active.delete(fault);
      fault.meet();
      return { effect: rule.effect, released: fault.released };
    }
    return undefined;
  }
}
