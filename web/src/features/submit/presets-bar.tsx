import { useQuery } from '@tanstack/react-query'

import { presetsQuery } from '@/api/drafts'

/** Presets to start from. */
export function PresetsBar({ disabled, onChoose }: { disabled: boolean; onChoose: (name: string) => void }) {
  const { data } = useQuery(presetsQuery)
  return (
    <section aria-labelledby="presets" className="spec-panel spec-presets">
      <h2 id="presets">Start from</h2>
      <ul>
        {data?.items.map(({ name, description }) => (
          <li key={name}>
            <button
              type="button"
              className="button"
              disabled={disabled}
              aria-describedby={`preset-${name}`}
              onClick={() => {
                onChoose(name)
              }}
            >
              {name}
            </button>
            <span className="muted small" id={`preset-${name}`}>
              {description}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
