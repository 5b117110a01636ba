interface Props<T extends string> {
  /** Names the choice for screen readers. */
  label: string
  options: readonly (readonly [T, string])[]
  value: T
  onChoose: (value: T) => void
}

/** One of a few. */
export function Segments<T extends string>({ label, options, value, onChoose }: Props<T>) {
  return (
    <div className="toggles segments" role="group" aria-label={label}>
      {options.map(([option, name]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => {
            onChoose(option)
          }}
        >
          {name}
        </button>
      ))}
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
