/** Values shared by the examples, so that they tell one story. */

export const agentId = '01a1fc11-0097-7482-9812-7f37379989fe';
export const taskId = '01a1fc11-0505-734a-8920-9c4c55a40f65';
export const runId = '6f1c1f0e-5f3b-5d0b-9a55-0d4f2f4f2a11';
export const retryId = '8e2d7a64-1c8b-5f0e-8d7c-2b9b8f5a7c31';
export const backfillId = '01a1fc20-7b3e-7c11-a0f4-5d2c90b1e6aa';
export const deliveryId = '01a1fc31-12ab-7f08-b6c2-9e7d43a10f57';
export const keyId = '5b0f3c2e-8a41-5d7e-9c20-3f6d1e8b7a94';
export const approvalId = '01a1fc55-3d1e-7b62-9c0a-4e8f7a21d3b0';
export const eventId = '01a1fc42-90cd-7a35-8e14-6b1f02d7c9e8';
export const position = '00000000000000001742';
export const cursor = 'WyJjcmVhdGVkX2F0IGRlc2NlbmRpbmciXQ';

export const created = '2026-11-20T08:00:00.000Z';
export const due = '2026-11-23T08:00:00.000Z';
export const next = '2026-11-24T08:00:00.000Z';
export const started = '2026-11-23T08:00:00.041Z';
export const ended = '2026-11-23T08:00:01.208Z';

/** The response to a command. */
export const done = (message: string, details: object) => ({ success: true, message, details });

/** A page with all items. */
export const page = (...items: readonly object[]) => ({
  items,
  total: items.length,
  limit: 50,
  offset: 0,
  has_more: false,
  next_cursor: null,
});

/** A server-sent event. */
export const message = (id: string, event: string, data: object) =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
