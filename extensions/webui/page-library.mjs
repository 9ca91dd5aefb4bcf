// The page's libraries. The build bundles this into `static/preact.js`, as browsers resolve no package names.

import htm from 'htm';
import { h } from 'preact';

export { options, render } from 'preact';
export {
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from 'preact/hooks';

export const html = htm.bind(h);
