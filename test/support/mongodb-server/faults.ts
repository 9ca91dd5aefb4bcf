import type { Doc } from './wire.ts';

/** A fault, with the affected command. */
export interface FaultRule {
  /**
   * The command's name as the driver sends it, such as `update`; `*` for all, including `hello`.
   */
  readonly command: string;
  /** Only for this collection. */
  readonly collection?: string;
  /** Only for commands that match. */
  readonly when?: (command: Doc) => boolean;
  /** The number of affected commands; default 1. */
  readonly times?: number;
  readonly effect: FaultEffect;
}

export type FaultEffect =
  /** The command gets an error, and is not executed. */
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly codeName: string;
      readonly message: string;
      readonly labels?: readonly string[];
    }
  /** The command gets this response, and is not executed. */
  | { readonly kind: 'answer'; readonly reply: Doc }
  /** The connection breaks: before the command is executed, or after it without a response. */
  | { readonly kind: 'drop'; readonly executed: boolean }
  /** Calls a function first (synchronously), then executes the command as usual. */
  | { readonly kind: 'interpose'; readonly act: () => void }
  /** Waits until the fault is released; then the command is executed and gets its response. */
  | { readonly kind: 'hold' };

/** An active fault. */
export interface Fault {
  /** Resolves when the first command meets it. */
  readonly met: Promise<void>;
  /** Removes it; commands that it holds continue. */
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

  /** The fault for a command, which it uses up. */
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
