import { Notice } from '@/lib/ui/notice'

import { MOST_RUNS } from './url-state'
import type { Missing } from './use-runs'

/** The address names what cannot be shown. */
export function MissingNotice({ missing, onRemove }: { missing: readonly Missing[]; onRemove: (id: string) => void }) {
  return (
    <Notice
      title={missing.length === 1 ? 'One run is missing' : `${missing.length} runs are missing`}
      testId="compare-missing"
    >
      <ul className="compare-missing">
        {missing.map(({ id, problem }) => (
          <li key={id}>
            <code>{id}</code>{' '}
            {problem.status === 404 || problem.status === 403
              ? 'does not exist, or belongs to a project that you are not in.'
              : `${problem.title}. This page keeps trying.`}
            <button
              type="button"
              className="button small"
              aria-label={`Remove ${id}`}
              onClick={() => {
                onRemove(id)
              }}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
    </Notice>
  )
}

export function TooManyNotice({ over }: { over: readonly string[] }) {
  return (
    <Notice title={`The first ${MOST_RUNS} runs are shown`} testId="compare-over">
      <p>
        More lines would be hard to distinguish. {over.length === 1 ? 'One is' : `${over.length} are`} left out:{' '}
        <code>{over.join(', ')}</code>
      </p>
    </Notice>
  )
}
