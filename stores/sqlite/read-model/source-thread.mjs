// Development and tests alone: lets tsx translate what a thread imports, then runs the thread's entry.
import { register } from 'tsx/esm/api';

register();
await import(process.argv[2]);
