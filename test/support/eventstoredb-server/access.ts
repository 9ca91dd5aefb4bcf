import { status, type Metadata, type sendUnaryData } from '@grpc/grpc-js';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { failure } from './messages.ts';
import type { ReadCall } from './read-call.ts';

/** A user of a server with security. */
export interface User {
  readonly password: string;
  /** Whether it is a member of `$admins`, who may read the whole log. */
  readonly isAdmin: boolean;
}

/** The parts of a call that matter for access. */
interface Call {
  readonly metadata: Metadata;
  emit(event: 'error', error: Error): boolean;
}

/** The users of a server and their rights, like on a real server with security. */
export class Access {
  /** By name; undefined: no security. */
  users: Readonly<Record<string, User>> | undefined;
  /** How many calls were rejected. */
  rejected = 0;

  /** Ends a call that is not allowed with the server's error. @returns whether it is allowed */
  admits(call: Call, callback?: sendUnaryData<never>): boolean {
    const error = this.#errorOf(call);
    if (error === undefined) return true;
    this.rejected += 1;
    if (callback === undefined) call.emit('error', error);
    else callback(error);
    return false;
  }

  #errorOf(call: Call): ReturnType<typeof failure> | undefined {
    if (this.users === undefined) return undefined;
    const [header = ''] = call.metadata.get('authorization');
    const [name = '', password] = Buffer.from(String(header).replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':');
    const user = this.users[name];
    if (user === undefined || user.password !== password) {
      return failure(status.UNAUTHENTICATED, 'Unauthenticated');
    }
    return user.isAdmin || !readsAll(call) ? undefined : denied();
  }
}

function readsAll(call: Call): boolean {
  const request = (call as Partial<ReadCall>).request as Partial<streams.ReadReq> | undefined;
  return request?.getOptions?.()?.hasAll?.() === true;
}

function denied(): ReturnType<typeof failure> {
  return failure(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
}
