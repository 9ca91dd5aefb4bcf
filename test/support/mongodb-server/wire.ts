import { BSON } from 'bson';

/**
 * MongoDB's wire protocol, as far as a current driver uses it: OP_MSG in both directions, and one
 * OP_QUERY for its first `hello`.
 */

/** A BSON document; its readers check the contents. */
export type Doc = Record<string, unknown>;

/** A command that a client sent. */
export interface Request {
  readonly id: number;
  /** The command, whose first field is its name. Document sequences are arrays in it again. */
  readonly body: Doc;
  /** Received as OP_QUERY; OP_REPLY is the response. */
  readonly legacy: boolean;
  /** The client wants no response (`moreToCome`). */
  readonly silent: boolean;
}

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;
const HEADER = 16;
const CHECKSUM_PRESENT = 1;
const MORE_TO_COME = 2;

/** Splits a connection's bytes into requests. */
export class RequestReader {
  /**
   * The parts of an incomplete message, joined only when it is complete: a large one arrives in
   * hundreds of parts.
   */
  #parts: Buffer[] = [];
  #length = 0;

  /** Length of the incomplete message in bytes; 0 for none. */
  get due(): number {
    const [first] = this.#parts;
    return first === undefined || first.length < HEADER ? 0 : first.readInt32LE(0);
  }

  /** @returns the completed requests @throws Error for an invalid message */
  push(chunk: Buffer): Request[] {
    this.#parts.push(chunk);
    this.#length += chunk.length;
    if (this.#length < HEADER || this.#length < this.due) return [];
    let rest = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    const requests: Request[] = [];
    while (rest.length >= HEADER) {
      const length = rest.readInt32LE(0);
      if (rest.length < length) break;
      requests.push(parse(rest.subarray(0, length)));
      rest = rest.subarray(length);
    }
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return requests;
  }
}

/** The bytes of a response to a request. */
export function answer(request: Request, reply: Doc, id: number): Buffer {
  const document = BSON.serialize(reply);
  const prefix = request.legacy ? legacyPrefix() : Buffer.from([0, 0, 0, 0, 0]);
  const header = Buffer.alloc(HEADER);
  header.writeInt32LE(HEADER + prefix.length + document.length, 0);
  header.writeInt32LE(id, 4);
  header.writeInt32LE(request.id, 8);
  header.writeInt32LE(request.legacy ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, prefix, document]);
}

/** A copy that went through BSON, which keeps only what the protocol can carry. */
export function throughBson(document: Doc): Doc {
  return BSON.deserialize(BSON.serialize(document));
}

/** Whether two documents are equal, byte for byte. */
export function sameBytes(a: Doc, b: Doc): boolean {
  return Buffer.compare(BSON.serialize(a), BSON.serialize(b)) === 0;
}

/** OP_REPLY: flags 8 (await capable), cursor 0, starting from 0, one document. */
function legacyPrefix(): Buffer {
  const prefix = Buffer.alloc(20);
  prefix.writeInt32LE(8, 0);
  prefix.writeInt32LE(1, 16);
  return prefix;
}

function parse(message: Buffer): Request {
  const id = message.readInt32LE(4);
  const kind = message.readInt32LE(12);
  if (kind === OP_QUERY) {
    const name = message.indexOf(0, HEADER + 4);
    return { id, body: documentAt(message, name + 9).document, legacy: true, silent: false };
  }
  if (kind !== OP_MSG) throw new Error(`not a message of the protocol: operation ${kind}`);
  const flags = message.readInt32LE(HEADER);
  const end = message.length - ((flags & CHECKSUM_PRESENT) === 0 ? 0 : 4);
  return {
    id,
    body: sections(message, HEADER + 4, end),
    legacy: false,
    silent: (flags & MORE_TO_COME) !== 0,
  };
}

function sections(message: Buffer, start: number, end: number): Doc {
  let body: Doc = {};
  const sequences: Doc = {};
  let at = start;
  while (at < end) {
    const kind = message[at];
    if (kind === 0) {
      const { document, next } = documentAt(message, at + 1);
      body = document;
      at = next;
    } else if (kind === 1) {
      const sectionEnd = at + 1 + message.readInt32LE(at + 1);
      const nameEnd = message.indexOf(0, at + 5);
      const documents: Doc[] = [];
      for (let place = nameEnd + 1; place < sectionEnd;) {
        const { document, next } = documentAt(message, place);
        documents.push(document);
        place = next;
      }
      sequences[message.toString('utf8', at + 5, nameEnd)] = documents;
      at = sectionEnd;
    } else {
      throw new Error(`not a section of a message: kind ${String(kind)}`);
    }
  }
  return { ...body, ...sequences };
}

function documentAt(message: Buffer, at: number): { document: Doc; next: number } {
  const next = at + message.readInt32LE(at);
  return { document: BSON.deserialize(message.subarray(at, next)), next };
}
