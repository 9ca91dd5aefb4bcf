import type { SlotLimits } from '../runs/slots.ts';

/**
 * The limits of one process with so many slots.
 * @param perAgent null: all
 * @param perNamespace null: all
 */
export function slotLimits(
  slots: number,
  perAgent: number | null = null,
  perNamespace: number | null = null,
): SlotLimits {
  return {
    perAgent: Math.min(slots, perAgent ?? slots),
    perNamespace: Math.min(slots, perNamespace ?? slots),
  };
}
