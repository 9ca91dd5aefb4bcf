import { Type } from '@sinclair/typebox';
import type { CoreAnswer, EndpointDescription } from '../contract.ts';

const closed = { additionalProperties: false };

const text = Type.String();

/** `POST api/preview`, as clients know it. */
export const previewEndpoint: EndpointDescription = {
  method: 'post',
  path: '/api/preview',
  operationId: 'previewScheduleForPage',
  examples: {
    body: { schedule_kind: 'cron', schedule_expr: '0 9 * * MON-FRI', count: 1 },
    answers: {
      200: {
        valid: true,
        schedule_text: 'at 09:00, Monday through Friday, UTC',
        fires: [{ at: '2026-11-23T09:00:00.000Z', local: '2026-11-23T09:00:00+00:00', note: null }],
        warnings: [],
      },
    },
  },
  summary: 'When a schedule fires, or what is wrong with it: for those who are still typing it',
  scopes: ['tasks:read'],
  body: Type.Object(
    {},
    { description: 'as `POST /schedules/preview` takes it; what is wrong with it is answered' },
  ),
  answers: {
    200: Type.Union([
      Type.Object(
        {
          valid: Type.Literal(true),
          schedule_text: text,
          fires: Type.Array(
            Type.Object(
              {
                at: Type.String({ format: 'date-time' }),
                local: text,
                note: Type.Union([text, Type.Null()]),
              },
              closed,
            ),
          ),
          warnings: Type.Array(text),
        },
        closed,
      ),
      Type.Object(
        {
          valid: Type.Literal(false),
          message: text,
          issues: Type.Array(Type.Object({ field: text, issue: text }, closed)),
        },
        closed,
      ),
    ]),
  },
};

/**
 * What the service says of a schedule as an answer that is none of its refusals: a half-typed schedule is nothing that
 * went wrong, and browsers write each refusal into their consoles.
 * @returns null for what it says of something else
 */
export function previewOf({ status, body }: CoreAnswer): object | null {
  if (status === 200) return { valid: true, ...(body as object) };
  if (status !== 400) return null;
  const { message, details } = body as {
    readonly message: string;
    readonly details: { readonly issues?: readonly object[] };
  };
  return { valid: false, message, issues: details.issues ?? [] };
}
