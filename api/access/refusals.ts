import { streams } from '../../domain/streams.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

/** A request that was refused, to an agent or in its name. */
export interface Refused extends Noted {
  /** Method and path as the interface's description writes them. */
  readonly action: string;
  /** The path as sent. */
  readonly path: string;
  readonly status: number;
  readonly code: string;
  /** For a call that came too late: the step whose wait had ended. Otherwise undefined. */
  readonly step?: { readonly run_id: string; readonly step: string } | undefined;
}

/** The record of refused requests. */
export class Refusals extends CappedRecord<Refused> {
  constructor(parts: RecordParts) {
    super(parts, {
      what: 'refused commands',
      keyOf: ({ action, status, code }) => `${status} ${code} ${action}`,
      streamOf: streams.refusals,
      eventOf({ agentId, action, path, status, code, step = {} }, counted, isSum) {
        const one = isSum ? { path: null } : { path, ...step };
        const data = { agent_id: agentId, action, status, code, ...one };
        return { type: 'CommandRefused', data: { ...data, ...counted } };
      },
    });
  }
}
