//! The keyboard of the [`Browser`]: keys, text, and text that is still being composed.

use serde_json::json;

use crate::Browser;

impl Browser {
    /// Presses a key, such as `ArrowRight` or `w`; `Shift+Tab` and `Control+Enter` hold another one meanwhile.
    pub fn press(&mut self, key: &str) {
        let (held, key) = key.rsplit_once('+').unwrap_or(("", key));
        let modifiers = match held {
            "Control" => 2,
            "Shift" => 8,
            _ => 0,
        };
        // What the key does by itself: move the focus, press a button, write.
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            " " => (32, " "),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            _ => (0, ""),
        };
        let mut event = json!({ "type": "rawKeyDown", "key": key, "modifiers": modifiers });
        if code != 0 {
            event["windowsVirtualKeyCode"] = code.into();
            event["code"] = if key == " " { "Space" } else { key }.into();
        }
        if !text.is_empty() {
            event["type"] = "keyDown".into();
            event["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Writes where the focus is.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Shows text that is being composed, as one types Chinese; [`Browser::write`] ends it.
    pub fn compose(&mut self, text: &str) {
        let end = text.encode_utf16().count();
        let composed = json!({ "text": text, "selectionStart": end, "selectionEnd": end });
        self.call("Input.imeSetComposition", composed);
    }
}
