/**
 * The life of a view: one closed union of states and one table of transitions. In each state, `View` calls the worker of that name; the event that the worker returns selects the next state.
 *
 *   opening ──► following ◄─────────────────────── switching
 *      │           │  ▲                               ▲
 *      ▼           ▼  │ canceled                      │
 *   missing ──► filling ──────► catching_up ──────► ready
 *                │  ▲  │              │               │
 *       poisoned ▼  │  └► paused ◄────┴───────────────┘
 *             failed└──────┘
 *
 * In any state:
 * - a live generation, if there is one, is fed and read; until then, an older shape may be fed and read;
 * - the previous generation is fed until its deadline, and a rollback switches to it;
 * - parked keys of the live generation are retried or skipped as ordered.
 */
export const viewStates = [
  /** The live generation is not known yet. */
  'opening',
  /** Neither a live generation nor a build exists. */
  'missing',
  /** A live generation is read and fed; no build is running. */
  'following',
  /** A build folds the log from its beginning into a new generation. */
  'filling',
  /** The build is paused by an order. */
  'paused',
  /** The built generation follows the log up to the live one, and is compared with it. */
  'catching_up',
  /** The built generation is level with the live one and waits for the switch. */
  'ready',
  /** Reads move to another generation. */
  'switching',
  /** The build met an event that cannot be folded. */
  'failed',
  /** The projector has ended. */
  'stopped',
] as const;
export type ViewState = (typeof viewStates)[number];

export type ViewEvent =
  /** A live generation exists. */
  | 'found'
  /** No live generation exists: it was never built, or was damaged and discarded. */
  | 'lost'
  /** A build begins: one was ordered, or nothing can be read. */
  | 'begun'
  | 'filled'
  | 'poisoned'
  | 'paused'
  | 'resumed'
  /** The build was not requested, or no longer is. */
  | 'canceled'
  /** The built generation is level with the live one, and that is recorded. */
  | 'level'
  /** Reads are to go to the built generation. */
  | 'released'
  /** Reads are to go back to the previous generation. */
  | 'rolled_back'
  /** The switch was made, or called off at the last instant. */
  | 'settled';

export const viewTransitions = {
  opening: { found: 'following', lost: 'missing' },
  missing: {
    found: 'following',
    begun: 'filling',
    canceled: 'missing',
    rolled_back: 'switching',
  },
  following: {
    lost: 'missing',
    begun: 'filling',
    canceled: 'following',
    rolled_back: 'switching',
  },
  filling: {
    filled: 'catching_up',
    poisoned: 'failed',
    paused: 'paused',
    canceled: 'following',
    rolled_back: 'switching',
  },
  paused: { resumed: 'filling', canceled: 'following', rolled_back: 'switching' },
  catching_up: {
    level: 'ready',
    paused: 'paused',
    canceled: 'following',
    rolled_back: 'switching',
  },
  ready: {
    released: 'switching',
    paused: 'paused',
    canceled: 'following',
    rolled_back: 'switching',
  },
  switching: { settled: 'following' },
  failed: { canceled: 'following', rolled_back: 'switching' },
  stopped: {},
} as const satisfies Record<ViewState, Partial<Record<ViewEvent, ViewState>>>;

/** The events that the worker of a state may return. */
export type EventIn<S extends ViewState> = keyof (typeof viewTransitions)[S];

/** The state that follows. @throws Error for an event that the table does not have in this state */
export function nextState(state: ViewState, event: ViewEvent): ViewState {
  const transitions: Partial<Record<ViewEvent, ViewState>> = viewTransitions[state];
  const next = transitions[event];
  if (next === undefined) throw new Error(`a view that is ${state} cannot be ${event}`);
  return next;
}
