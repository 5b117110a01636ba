import { useState } from 'react'

import { parseSearch, stringifySearch } from '@/lib/search-params'
import { PopoverMenu } from '@/lib/ui/popover-menu'

import { type ChangeExperimentListUrl, type ExperimentListUrlState, parseExperimentListUrl } from './url-state'
import { readViews, type SavedView, withoutView, withView, writeViews } from './views'

interface Props {
  /** The name of the views' owner. */
  person: string
  view: ExperimentListUrlState
  onView: ChangeExperimentListUrl
}

/** A menu of views, each with filters, order and columns, which this browser keeps for the person. */
export function SavedViews({ person, view, onView }: Props) {
  const [views, setViews] = useState(() => readViews(person, window.localStorage))
  const address = addressOf(view)
  const keep = (next: SavedView[]) => {
    writeViews(person, next, window.localStorage)
    setViews(next)
  }
  return (
    <PopoverMenu title="Views" label="Saved views">
      {(id) => (
        <>
          {views.length === 0 && <p className="muted small">No saved views yet.</p>}
          <ul>
            {views.map((saved) => (
              <li key={saved.name} className="saved-view">
                <button
                  type="button"
                  className="button quiet"
                  popoverTarget={id}
                  popoverTargetAction="hide"
                  aria-current={saved.address === address ? 'true' : undefined}
                  onClick={() => {
                    onView(() => parseExperimentListUrl(parseSearch(saved.address)))
                  }}
                >
                  {saved.name}
                </button>
                <button
                  type="button"
                  className="copy-button"
                  aria-label={`Delete the view ${saved.name}`}
                  onClick={() => {
                    keep(withoutView(views, saved.name))
                  }}
                >
                  ×
                </button>
              </li>
            ))}
          </ul>
          <form
            className="save-view"
            onSubmit={(event) => {
              event.preventDefault()
              const name = new FormData(event.currentTarget).get('name')
              if (typeof name === 'string') keep(withView(views, { name: name.trim(), address }))
              event.currentTarget.reset()
            }}
          >
            <input
              name="name"
              aria-label="Name of this view"
              placeholder="Name of this view"
              maxLength={60}
              required
              pattern=".*\S.*"
            />
            <button type="submit" className="button">
              Save
            </button>
          </form>
        </>
      )}
    </PopoverMenu>
  )
}

/** What a view keeps of the address: all but the open groups. */
function addressOf(view: ExperimentListUrlState): string {
  return stringifySearch({ ...view, open: undefined })
}
