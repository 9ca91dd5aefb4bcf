interface Field {
  readonly number: number;
  /** The value of a number. */
  readonly varint: bigint;
  /** The content of other types. */
  readonly bytes: Buffer;
}

/** The fields of a message in protobuf's wire format. Missing ones have the defaults of proto3. */
export class Fields {
  readonly #fields: readonly Field[];

  /** @throws Error for an invalid message */
  constructor(message: Buffer) {
    this.#fields = fieldsOf(message);
  }

  has(number: number): boolean {
    return this.#find(number) !== undefined;
  }

  text(number: number): string {
    return this.#find(number)?.bytes.toString('utf8') ?? '';
  }

  hex(number: number): string {
    return this.#find(number)?.bytes.toString('hex') ?? '';
  }

  number(number: number): number {
    return Number(BigInt.asIntN(64, this.#find(number)?.varint ?? 0n));
  }

  fixed64(number: number): bigint {
    return this.#find(number)?.bytes.readBigUInt64LE() ?? 0n;
  }

  double(number: number): number {
    return this.#find(number)?.bytes.readDoubleLE() ?? 0;
  }

  /** A nested message. */
  one(number: number): Fields | undefined {
    const field = this.#find(number);
    return field === undefined ? undefined : new Fields(field.bytes);
  }

  /** Nested messages. */
  all(number: number): readonly Fields[] {
    return this.#fields
      .filter((field) => field.number === number)
      .map(({ bytes }) => new Fields(bytes));
  }

  #find(number: number): Field | undefined {
    return this.#fields.findLast((field) => field.number === number);
  }
}

function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at];
      if (byte === undefined) throw new Error('the message ends within a number');
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const bytes = (length: number): Buffer => {
    if (at + length > message.length) throw new Error('the message ends within a field');
    at += length;
    return message.subarray(at - length, at);
  };
  const none = Buffer.alloc(0);
  while (at < message.length) {
    const key = Number(varint());
    const number = key >>> 3;
    switch (key & 7) {
      case 0:
        fields.push({ number, varint: varint(), bytes: none });
        break;
      case 1:
        fields.push({ number, varint: 0n, bytes: bytes(8) });
        break;
      case 2:
        fields.push({ number, varint: 0n, bytes: bytes(Number(varint())) });
        break;
      case 5:
        fields.push({ number, varint: 0n, bytes: bytes(4) });
        break;
      default:
        throw new Error(`no such wire type: ${String(key & 7)}`);
    }
  }
  return fields;
}
