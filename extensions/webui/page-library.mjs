// The page's libraries. The page's modules import `static/preact.js`, because browsers resolve no package names. The
// build replaces that file with this one.

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
