import type { SlotLimits } from '../runs/slots.ts';

/** The part of the slots that no single agent takes by default. */
const KEPT_FOR_OTHERS = 1 / 8;

/**
 * The limits of one process with so many slots. By default, one agent holds at most seven eighths (all, of fewer than
 * eight), and a namespace as many as there are.
 * @param perAgent null: the default
 * @param perNamespace null: the default
 */
export function slotLimits(
  slots: number,
  perAgent: number | null = null,
  perNamespace: number | null = null,
): SlotLimits {
  return {
    perAgent: Math.min(slots, perAgent ?? slots - Math.floor(slots * KEPT_FOR_OTHERS)),
    perNamespace: Math.min(slots, perNamespace ?? slots),
  };
}
