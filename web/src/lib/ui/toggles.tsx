interface Props<T extends string> {
  /** Names the choice for screen readers, and in front of the buttons with `shown`. */
  label: string
  shown?: boolean
  options: readonly (readonly [T, string])[]
  chosen: T
  onChoose: (option: T) => void
}

/** One of a few: buttons side by side. */
export function Toggles<T extends string>({ label, shown = false, options, chosen, onChoose }: Props<T>) {
  return (
    <div className="toggle-field">
      {shown && (
        <span className="muted small" aria-hidden>
          {label}
        </span>
      )}
      <div className="toggles joined" role="group" aria-label={label}>
        {options.map(([value, text]) => (
          <button
            key={value}
            type="button"
            aria-pressed={value === chosen}
            onClick={() => {
              onChoose(value)
            }}
          >
            {text}
          </button>
        ))}
      </div>
    </div>
  )
}

/** On or off. */
export function Switch({ label, on, onToggle }: { label: string; on: boolean; onToggle: () => void }) {
  return (
    <label className="switch small">
      <input type="checkbox" checked={on} onChange={onToggle} />
      {label}
    </label>
  )
}
