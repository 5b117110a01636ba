import { Link } from '@tanstack/react-router'

interface Props {
  ids: readonly string[]
  onClear: () => void
}

/** What can be done with the rows that are ticked. */
export function CompareBar({ ids, onClear }: Props) {
  if (ids.length === 0) return null
  return (
    <div className="compare-bar" role="region" aria-label="Ticked experiments">
      <Link to="/compare" search={{ ids: ids.join(',') }} className="button primary">
        Compare {ids.length}
      </Link>
      <button type="button" className="button quiet" onClick={onClear}>
        Clear
      </button>
    </div>
  )
}
