import { useNavigate } from '@tanstack/react-router'
import { useId, useRef } from 'react'

import { useShortcuts } from '@/lib/keyboard'
import { dismissNewestToast } from '@/lib/ui/toasts'

/** Every shortcut, as the list shows it: keys to press one after the other, as browsers name them. */
const DOES = {
  '/': 'Go to the search field of this page, or of the experiments',
  'g e': 'Go to the list of experiments',
  n: 'Write a new experiment',
  '?': 'Show these shortcuts',
  Escape: 'Close a dialog, a menu or a message',
}

/** Shortcuts of the experiment list, which handles them itself. */
const DOES_IN_LIST = {
  j: 'In the list: go to the next row',
  k: 'In the list: go to the previous row',
  x: 'In the list: select the row',
  X: 'In the list: select all from the last selected row to this one',
}

/** Shortcuts of the focused chart, tabs or heat-map. */
const DOES_IN_FOCUS = {
  'ArrowLeft|ArrowRight': 'In a chart, the tabs or the heat-map: go to the previous or next round, tab or cell',
  'ArrowUp|ArrowDown': 'In the heat-map: go to the participant above or below',
  'PageUp|PageDown': 'In the heat-map: go ten participants up or down',
  'Home|End': 'In a chart, the tabs or the heat-map: go to the first or the last',
}

/** Display names of keys with a different browser name. */
const SHOWN: Record<string, string> = {
  Escape: 'Esc',
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  PageUp: 'Page up',
  PageDown: 'Page down',
}

/** The keys that work on every page, and the button and dialog that list them. */
export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const navigate = useNavigate()
  const toExperiments = () => navigate({ to: '/', search: {} })
  const toSearch = async () => {
    if (focusSearch()) return
    await toExperiments()
    requestAnimationFrame(focusSearch)
  }
  const help = () => dialog.current?.showModal()

  useShortcuts({
    '/': () => void toSearch(),
    'g e': () => void toExperiments(),
    n: () => void navigate({ to: '/new', search: {} }),
    '?': help,
    Escape: dismissNewestToast,
  } satisfies Record<keyof typeof DOES, () => void>)

  return (
    <>
      <button type="button" className="button quiet" aria-label="Keyboard shortcuts" title="Shortcuts" onClick={help}>
        ?
      </button>
      <dialog ref={dialog} aria-labelledby={heading} data-testid="shortcuts">
        <form method="dialog">
          <h2 id={heading}>Keyboard shortcuts</h2>
          <dl className="shortcuts">
            {Object.entries({ ...DOES, ...DOES_IN_LIST, ...DOES_IN_FOCUS }).map(([keys, does]) => (
              <div key={keys}>
                <dt>
                  <Keys keys={keys} />
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <div className="dialog-actions">
            <button type="submit" className="button">
              Close
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}

/** One key after the other, or one of several. */
function Keys({ keys }: { keys: string }) {
  const between = keys.includes('|') ? ' or ' : ' then '
  return keys.split(/[ |]/).map((key, place) => (
    <span key={key}>
      {place > 0 && between}
      <kbd>{SHOWN[key] ?? key}</kbd>
    </span>
  ))
}

/** Returns false if the page shows no search field. */
function focusSearch(): boolean {
  const field = [...document.querySelectorAll<HTMLInputElement>('main input[type="search"]')].find(
    (found) => found.closest('details:not([open])') === null,
  )
  field?.focus()
  field?.select()
  return field !== undefined
}
