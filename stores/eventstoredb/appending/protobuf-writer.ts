/** Wire types of protobuf. */
const VARINT = 0;
const BYTES = 2;

/** The longest varint written here, of 2^53 - 1. */
const MAX_VARINT_BYTES = 8;

/** The most bytes of a tag and a length. */
export const FIELD_OVERHEAD = 1 + MAX_VARINT_BYTES;

/**
 * Writes a protobuf message from its end to its beginning, so that the length of each part is known when it is needed.
 * Fields therefore appear in the reverse order of the calls. Field numbers go up to 15.
 */
export class ProtobufWriter {
  readonly #buffer: Buffer;
  #start: number;

  /** @param bytes at least as many as the message will have */
  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(bytes);
    this.#start = bytes;
  }

  /** The message written so far. */
  get message(): Buffer {
    return this.#buffer.subarray(this.#start);
  }

  /** A mark. The fields of a nested message are written next, before it. */
  get end(): number {
    return this.#start;
  }

  /** An integer from 0 to 2^53 - 1. */
  integer(field: number, value: number): void {
    this.#varint(value);
    this.#tag(field, VARINT);
  }

  /** A string, or bytes that are a string in UTF-8. */
  string(field: number, value: string): void {
    const bytes = Buffer.byteLength(value);
    this.#start -= bytes;
    this.#buffer.write(value, this.#start, 'utf8');
    this.#varint(bytes);
    this.#tag(field, BYTES);
  }

  /** Makes everything written since a mark one nested message. */
  nest(field: number, end: number): void {
    this.#varint(end - this.#start);
    this.#tag(field, BYTES);
  }

  #tag(field: number, wireType: number): void {
    this.#start -= 1;
    this.#buffer[this.#start] = field * 8 + wireType;
  }

  #varint(value: number): void {
    let bytes = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
    this.#start -= bytes;
    let rest = value;
    for (let place = 0; place < bytes - 1; place += 1) {
      this.#buffer[this.#start + place] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#buffer[this.#start + bytes - 1] = rest;
  }
}
